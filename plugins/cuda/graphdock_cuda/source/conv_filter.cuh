// After conv.cuh: m elements of the window and input channels, n output channels.

GD_KERNEL(conv_filter)(const T* x, const T* dy, T* dw, R* sums, Slide s, i64 m, i64 n, i64 k, int parts) {
  gathered(Turned<Windows>{{x, s}}, Gradients{dy, s}, sums, m, n, k, parts, [&](i64 i, i64 j, R sum) { store(dw + i * n + j, sum); });
}
GD_KERNEL(conv_filter_join)(const R* sums, T* dw, Slide s, i64 m, i64 n, int parts) {
  GD_GRID_LOOP(i64, i, m * n) store(dw + i, total(sums, i, m * n, parts));
}
