// Matrices with zeros outside of a band around the diagonal. E: an element, see word.cuh.

GD_KERNEL(band)(const E* x, E* y, i64 n, i64 rows, i64 columns, i64 lower, i64 upper) {
  GD_GRID_LOOP(i64, i, n) {
    const i64 line = i / columns, offset = i - line * columns - line % rows;
    y[i] = offset >= -lower && offset <= upper ? x[i] : E{};
  }
}
