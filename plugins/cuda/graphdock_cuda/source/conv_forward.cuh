// After conv.cuh: m positions of the window, n output channels. BIAS, ACTIVATION: of the results.

GD_DEVICE R finished(R sum, const T* bias, i64 channel) {
#if BIAS
  return activated<ACTIVATION>(sum + load(bias + channel));
#else
  return activated<ACTIVATION>(sum);
#endif
}
GD_KERNEL(conv_forward)(const T* x, const T* w, T* y, const T* bias, R* sums, Slide s, i64 m, i64 n, i64 k, int parts) {
  gathered(Windows{x, s}, Plain{w, 1, n}, sums, m, n, k, parts,
           [&](i64 i, i64 j, R sum) { store(y + of_output(s, i, j), finished(sum, bias, j)); });
}
GD_KERNEL(conv_forward_join)(const R* sums, T* y, const T* bias, Slide s, i64 m, i64 n, int parts) {
  GD_GRID_LOOP(i64, i, m * n) store(y + of_output(s, i / n, i % n), finished(total(sums, i, m * n, parts), bias, i % n));
}
