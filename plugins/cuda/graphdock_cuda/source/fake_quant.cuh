// Numbers rounded to evenly spaced ones of a range that holds zero, in float. After report.cuh.

struct Range { float low, high, step; };

GD_DEVICE float rounded_away(float x) { return copysign(floor(fabs(x) + 0.5f), x); }

// The range moved so that zero is one of its numbers; [0, 0] has the step 1.
GD_DEVICE Range nudged(float low, float high, float least, float most) {
  if (low == 0 && high == 0) return {0, 0, 1};
  const float step = (high - low) / (most - least);
  float zero = rounded_away(least - low / step);
  zero = zero < least ? least : zero > most ? most : zero;
  return {(least - zero) * step, (most - zero) * step, step};
}
GD_DEVICE float quantised(float x, Range range) {
  return floor(minimum(maximum(x, range.low), range.high) / range.step + 0.5f) * range.step;
}

GD_KERNEL(fixed)(const float* x, float* y, i64 n, float low, float high, float step) {
  const Range range = {low, high, step};
  GD_GRID_LOOP(i64, i, n) y[i] = quantised(x[i], range);
}
GD_KERNEL(fixed_gradient)(const float* g, const float* x, float* y, i64 n, float low, float high) {
  GD_GRID_LOOP(i64, i, n) y[i] = g[i] * (x[i] >= low && x[i] <= high ? 1.0f : 0.0f);
}

// A range for each of the last dim's elements, or one alone.
GD_DEVICE Range learnt_range(const float* lows, const float* highs, i64 at, float least, float most, i64* words, i64 code) {
  const float low = lows[at], high = highs[at];
  if (!(low < high || (low == 0 && high == 0))) report(words, code, at, 0);
  return nudged(low, high, least, most);
}
GD_KERNEL(learnt)
(const float* x, const float* lows, const float* highs, float* y, i64 n, i64 ranges, float least, float most, i64* words, i64 code) {
  GD_GRID_LOOP(i64, i, n) y[i] = quantised(x[i], learnt_range(lows, highs, i % ranges, least, most, words, code));
}
GD_KERNEL(learnt_gradient)
(const float* g, const float* x, const float* lows, const float* highs, float* y, float* below, float* above, i64 n, i64 ranges,
 float least, float most, i64* words, i64 code) {
  GD_GRID_LOOP(i64, i, n) {
    const i64 at = i % ranges;
    const Range range = learnt_range(lows, highs, at, least, most, words, code);
    const bool limited = lows[at] != 0 || highs[at] != 0;
    const bool under = limited && x[i] < range.low, over = limited && x[i] > range.high;
    y[i] = under || over ? 0.0f : g[i];
    below[i] = under ? g[i] : g[i] * 0.0f;
    above[i] = over ? g[i] : g[i] * 0.0f;
  }
}
