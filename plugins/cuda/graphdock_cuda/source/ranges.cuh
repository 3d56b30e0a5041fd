// Evenly spaced numbers. ELEMENT: type of elements; WIDE: type that they are computed in. Products are rounded before they are added.

typedef ELEMENT T;

GD_DEVICE i64 spaced(i64 start, i64 i, i64 delta) { return wrap_add(start, wrap_mul(i, delta)); }
GD_DEVICE double spaced(double start, i64 i, double delta) {
  return __dadd_rn(start, __dmul_rn(static_cast<double>(i), delta));
}

GD_KERNEL(range)(WIDE start, WIDE delta, T* y, i64 n) {
  GD_GRID_LOOP(i64, i, n) y[i] = static_cast<T>(spaced(start, i, delta));
}

GD_KERNEL(lin_space)(const T* start, const T* stop, T* y, i64 n) {
  const double first = *start, last = *stop, step = n > 1 ? (last - first) / static_cast<double>(n - 1) : 0.0;
  GD_GRID_LOOP(i64, i, n) y[i] = static_cast<T>(i > 0 && i == n - 1 ? last : spaced(first, i, step));
}
