// Softmax and its logarithm: FUNCTION is softmax or log_softmax. After exponentials.cuh.

template <class G> GD_DEVICE void softmax(const T* x, T* y, i64 rows, i64 width) {
  GD_ROWS(G, row, rows) {
    const T* from = x + row * width;
    T* to = y + row * width;
    const Exponentials e = exponentials<G>(from, width);
    GD_ROW(G, i, width) store(to + i, exp(load(from + i) - e.largest) / e.sum);
  }
}
template <class G> GD_DEVICE void log_softmax(const T* x, T* y, i64 rows, i64 width) {
  GD_ROWS(G, row, rows) {
    const T* from = x + row * width;
    T* to = y + row * width;
    const Exponentials e = exponentials<G>(from, width);
    const C log_sum = log(e.sum);
    GD_ROW(G, i, width) store(to + i, load(from + i) - e.largest - log_sum);
  }
}

GD_KERNEL(softmax_warp)(const T* x, T* y, i64 rows, i64 width) { FUNCTION<warp_group>(x, y, rows, width); }
GD_KERNEL(softmax_block)(const T* x, T* y, i64 rows, i64 width) { FUNCTION<block_group>(x, y, rows, width); }
