// Cross products of vectors of three elements. ELEMENT: type of elements. After scalar.cuh.

typedef ELEMENT T;

GD_KERNEL(cross)(const T* a, const T* b, T* y, i64 rows) {
  GD_GRID_LOOP(i64, row, rows) {
    compute_t<T> u[3], v[3];
#pragma unroll
    for (int i = 0; i < 3; ++i) u[i] = load(a + 3 * row + i), v[i] = load(b + 3 * row + i);
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      const int j = (i + 1) % 3, k = (i + 2) % 3;
      store(y + 3 * row + i, sub(mul(u[j], v[k]), mul(u[k], v[j])));
    }
  }
}
