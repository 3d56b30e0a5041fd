// Poisson numbers, in double. Attempt r of element i of n takes two words of block 1 + r * n + i. Below a rate of 10 by the distribution
// function, else Hoermann, "The transformed rejection method for generating Poisson random variables", 1993: PTRS.
// ELEMENT: type of the rates; OUT: of the numbers. After philox.cuh.

GD_DEVICE double counted(double rate, double u) {
  double term = exp(-rate), total = term, count = 0;
  for (int k = 1; k < 100 && u >= total; ++k) {
    count += 1;
    term = term * rate / k;
    total += term;
  }
  return count;
}

GD_DEVICE bool transformed(double rate, double u, double v, double& k) {
  const double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b, inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double centred = u - 0.5, edge = 0.5 - fabs(centred);
  v = 1 - v;
  k = floor((2 * a / edge + b) * centred + rate + 0.43);
  if (edge >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return true;
  if (k < 0 || (edge < 0.013 && v > edge)) return false;
  return log(v * inverse_alpha / (a / (edge * edge) + b)) <= k * log(rate) - rate - lgamma(k + 1);
}

GD_KERNEL(random_poisson)(GD_STREAM, const ELEMENT* rates, OUT* y, i64 n, i64 size) {
  GD_OPEN_STREAM(stream);
  GD_GRID_LOOP(i64, i, n) {
    const double rate = static_cast<double>(load(rates + i % size));
    double made = is_floating<OUT>::value ? limits<double>::nan() : 0.0;
    if (rate >= 0 && rate < limits<double>::infinity()) {
      for (u64 number = 1 + static_cast<u64>(i);; number += static_cast<u64>(n)) {
        const Words words = stream.block(number);
        const double u = fraction(words.at[0]);
        if (rate < 10) {
          made = counted(rate, u);
          break;
        }
        if (transformed(rate, u, fraction(words.at[1]), made)) break;
      }
    }
    store(y + i, made);
  }
}
