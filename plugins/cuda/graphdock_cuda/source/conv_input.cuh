// After conv.cuh: m positions in the input, n its channels.

GD_KERNEL(conv_input)(const T* w, const T* dy, T* dx, R* sums, Slide s, i64 m, i64 n, i64 k, int parts) {
  gathered(Reached{dy, s}, FilterBack{w, s}, sums, m, n, k, parts,
           [&](i64 i, i64 j, R sum) { store(dx + of_input(s, i, j), sum); });
}
GD_KERNEL(conv_input_join)(const R* sums, T* dx, Slide s, i64 m, i64 n, int parts) {
  GD_GRID_LOOP(i64, i, m * n) store(dx + of_input(s, i / n, i % n), total(sums, i, m * n, parts));
}
