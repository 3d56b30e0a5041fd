// After conv.cuh: m positions of the window, n output channels.

GD_KERNEL(conv_forward)(const T* x, const T* w, T* y, R* sums, Slide s, i64 m, i64 n, i64 k, int parts) {
  gathered(Windows{x, s}, Plain{w, 1, n}, y, sums, m, n, k, parts, [&](i64 i, i64 j) { return of_output(s, i, j); });
}
GD_KERNEL(conv_forward_join)(const R* sums, T* y, Slide s, i64 m, i64 n, int parts) {
  GD_GRID_LOOP(i64, i, m * n) store(y + of_output(s, i / n, i % n), total(sums, i, m * n, parts));
}
