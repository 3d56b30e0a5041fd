// Floats as integers of a range, and back, in double. ELEMENT: type of the integers; MODE: 0 MIN_COMBINED, 1 MIN_FIRST, 2 SCALED.
// After scalar.cuh and report.cuh. Products are rounded before anything is added to them.

typedef ELEMENT T;

GD_DEVICE double rounded_away(double x) { return copysign(floor(fabs(x) + 0.5), x); }
GD_DEVICE double clamped(double x, double low, double high) { return x < low ? low : x > high ? high : x; }
GD_DEVICE double larger_of(double a, double b) { return b > a ? b : a; }
GD_DEVICE double larger_step(double step, double end, double count) {
  return end * count > 0 && end / count > step ? end / count : step;
}

GD_KERNEL(quantize)
(const float* x, const float* low, const float* high, T* y, float* y_low, float* y_high, i64 n, double least, double most, int bits,
 double width, int even, double narrow, i64* words, i64 code) {
  const double from = *low, to = *high, infinity = limits<double>::infinity();
  if (!(-infinity < from && from <= to && to < infinity)) report(words, code, 0, 0);
  double first = from < 0 ? from : 0.0;
  const double size = larger_of(larger_of(1.0, fabs(from)), fabs(to));
  double last = larger_of(larger_of(0.0, to), __dadd_rn(first, __dmul_rn(size, width)));
  double step = 0, zero = 0;
  if (MODE == 2) {
    step = larger_step(larger_step(0.0, first, least + narrow), last, most);
    first = (least + narrow) * step;
    last = most * step;
  } else if (MODE == 1) {
    step = (last - first) / (exp2(static_cast<double>(bits)) - 1);
    zero = rounded_away(first / step) - least;
  } else {
    step = (most - least) / (last - first);
    zero = least != 0 ? exp2(static_cast<double>(bits - 1)) : 0.0;
  }
  GD_GRID_LOOP(i64, i, n) {
    double value = x[i];
    if (MODE == 2) {
      value = clamped(value, first, last) / (step != 0 ? step : 1.0);
      value = even ? rint(value) : rounded_away(value);
    } else if (MODE == 1) {
      value = rounded_away(value / step) - zero;
    } else {
      value = rounded_away(__dadd_rn(__dmul_rn(clamped(value, first, last) - first, step), -zero));
    }
    y[i] = converted<T>(clamped(value, least, most));
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    *y_low = static_cast<float>(first);
    *y_high = static_cast<float>(last);
  }
}

GD_KERNEL(dequantize)
(const T* x, const float* low, const float* high, float* y, i64 n, double least, double most, int bits, double narrow) {
  double first = *low, step, zero = 0;
  const double last = *high;
  if (MODE == 2) {
    step = last / most;
    if (least != 0) step = larger_of(first / (least + narrow), step);
    first = 0;
  } else {
    step = (last - first) / (most - least);
    if (MODE == 1 && step != 0) first = rounded_away(first / step) * step;
    zero = MODE == 1 ? least : least != 0 ? -exp2(static_cast<double>(bits - 1)) : 0.0;
  }
  GD_GRID_LOOP(i64, i, n) y[i] = static_cast<float>(__dadd_rn(__dmul_rn(static_cast<double>(x[i]) - zero, step), first));
}
