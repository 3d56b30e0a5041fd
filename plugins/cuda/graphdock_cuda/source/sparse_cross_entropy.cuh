// The cross-entropy with a class index of type LABEL per row. After exponentials.cuh. With SCALED the derivative is multiplied by the
// row's slope.

typedef LABEL TL;

template <class G>
GD_DEVICE void sparse(const T* x, const TL* labels, const T* slope, T* loss, T* backprop, i64 rows, i64 width, i64* words, i64 code) {
  GD_ROWS(G, row, rows) {
    const i64 at = row * width, label = static_cast<i64>(labels[row]);
    if (label < 0 || label >= width) {
      if (G::thread() == 0) {
        words[0] = label;
        words[1] = row;
        __threadfence_system();
        words[2] = code;
      }
      continue;
    }
    Exponentials e = exponentials<G>(x + at, width);
    e.sum += e.largest - e.largest;  // a row with an infinity is no numbers, as NumPy has it
    const C factor = SCALED ? load(slope + row) : C(1);
    GD_ROW(G, i, width) {
      const C logit = load(x + at + i) - e.largest;
      if (i == label) store(loss + row, log(e.sum) - logit);
      const C derivative = exp(logit) / e.sum - (i == label ? C(1) : C(0));
      store(backprop + at + i, SCALED ? derivative * factor : derivative);
    }
  }
}

GD_KERNEL(sparse_cross_entropy_warp)(const T* x, const TL* labels, const T* slope, T* loss, T* backprop, i64 rows, i64 width, i64* words, i64 code) {
  sparse<warp_group>(x, labels, slope, loss, backprop, rows, width, words, code);
}
GD_KERNEL(sparse_cross_entropy_block)(const T* x, const TL* labels, const T* slope, T* loss, T* backprop, i64 rows, i64 width, i64* words, i64 code) {
  sparse<block_group>(x, labels, slope, loss, backprop, rows, width, words, code);
}
