// Index tuples of places counted through an array. ELEMENT: type of the indices.

typedef ELEMENT T;
struct Dims { i64 at[MAX_RANK]; };

GD_KERNEL(unravel_places)(const T* x, T* y, i64 n, int rank, Dims dims, i64 whole, i64* words, i64 code) {
  GD_GRID_LOOP(i64, i, n) {
    i64 left = x[i];
    if (left < 0 || left >= whole) {
      report(words, code, i, left);
      continue;
    }
    for (int axis = rank - 1; axis >= 0; --axis) {
      const i64 above = left / dims.at[axis];
      y[axis * n + i] = static_cast<T>(left - above * dims.at[axis]);
      left = above;
    }
  }
}
