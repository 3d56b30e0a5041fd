// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000, in double. Attempt r of element i of n takes block
// 1 + r * n + i. ELEMENT: type of alpha; OUT: of the numbers. After philox.cuh.

GD_KERNEL(random_gamma)(GD_STREAM, const ELEMENT* alphas, OUT* y, i64 n, i64 size) {
  GD_OPEN_STREAM(stream);
  GD_GRID_LOOP(i64, i, n) {
    const double alpha = static_cast<double>(load(alphas + i % size));
    double made = limits<double>::nan();
    if (alpha > 0 && alpha < limits<double>::infinity()) {
      const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3.0;
      for (u64 number = 1 + static_cast<u64>(i);; number += static_cast<u64>(n)) {
        const Words words = stream.block(number);
        const double z = sqrt(-2 * log(1 - fraction(words.at[0]))) * cos(6.28318530717958647693 * fraction(words.at[1]));
        const double root = 1 + z / sqrt(9 * d), v = root * root * root;
        if (!(v > 0) || !(log(1 - fraction(words.at[2])) < z * z / 2 + d - d * v + d * log(v))) continue;
        made = d * v * (alpha < 1 ? pow(1 - fraction(words.at[3]), 1 / alpha) : 1.0);
        break;
      }
    }
    store(y + i, made);
  }
}
