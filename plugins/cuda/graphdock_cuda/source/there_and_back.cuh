// Numbers rounded to multiples of a scale that integers from least to most can count. ELEMENT: type of elements; GIVEN: whether the
// range may be narrower than the numbers; UP: whether halves go up, else to even. After report.cuh.

typedef ELEMENT T;

// The farthest integer on a side stands for the end of the range there.
GD_DEVICE double larger_step(double step, double end, double count) {
  return end * count > 0 && end / count > step ? end / count : step;
}

GD_KERNEL(there_and_back)
(const T* x, const T* low, const T* high, T* y, i64 n, double least, double most, i64* words, i64 code) {
  typedef compute_t<T> C;
  const double first = to_compute(*low), last = to_compute(*high);
  if (GIVEN && first > last) report(words, code, 0, 0);
  const double step = larger_step(larger_step(0.0, first, least), last, most);
  const C scale = static_cast<C>(step), start = static_cast<C>(least * step), end = static_cast<C>(most * step);
  GD_GRID_LOOP(i64, i, n) {
    C value = load(x + i);
    if (GIVEN) value = value < start ? start : value > end ? end : value;
    value /= scale;
    value = UP ? floor(value + C(0.5)) : rint(value);
    store(y + i, step == 0 ? C(0) : value * scale);
  }
}
