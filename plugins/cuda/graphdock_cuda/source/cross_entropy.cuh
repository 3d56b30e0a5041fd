// The cross-entropy with a distribution per row. After exponentials.cuh. With SCALED the derivative is multiplied by the row's slope.

template <class G>
GD_DEVICE void cross_entropy(const T* x, const T* labels, const T* slope, T* loss, T* backprop, i64 rows, i64 width) {
  GD_ROWS(G, row, rows) {
    const i64 at = row * width;
    Exponentials e = exponentials<G>(x + at, width);
    e.sum += e.largest - e.largest;  // a row with an infinity is no numbers, as NumPy has it
    const C log_sum = log(e.sum);
    const C factor = SCALED ? load(slope + row) : C(1);
    C total = C(0);
    GD_ROW(G, i, width) {
      const C logit = load(x + at + i) - e.largest, label = load(labels + at + i);
      total += (log_sum - logit) * label;
      store(backprop + at + i, SCALED ? (exp(logit) / e.sum - label) * factor : exp(logit) / e.sum - label);
    }
    total = G::reduce(total, sum_op());
    if (G::thread() == 0) store(loss + row, total);
  }
}

GD_KERNEL(cross_entropy_warp)(const T* x, const T* labels, const T* slope, T* loss, T* backprop, i64 rows, i64 width) {
  cross_entropy<warp_group>(x, labels, slope, loss, backprop, rows, width);
}
GD_KERNEL(cross_entropy_block)(const T* x, const T* labels, const T* slope, T* loss, T* backprop, i64 rows, i64 width) {
  cross_entropy<block_group>(x, labels, slope, loss, backprop, rows, width);
}
