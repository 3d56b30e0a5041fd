// Small products of matrices beside decompositions, one thread per number of the result. After complex.cuh, block.cuh and
// matrix.cuh; ELEMENT is the matrices' type. Batches are counted in the results.

// y = a^H a + weight (of m >= n: n by n), or a a^H + weight (m by m).
GD_KERNEL(gram)(const ELEMENT* a, ELEMENT* y, i64 count, int m, int n, double weight) {
  const int size = m >= n ? n : m, length = m >= n ? m : n;
  const i64 along = m >= n ? n : 1, across = m >= n ? 1 : n;
  GD_GRID_LOOP(i64, flat, count) {
    const i64 matrix = flat / (static_cast<i64>(size) * size), j = flat % size, i = flat / size % size;
    const ELEMENT* const from = a + matrix * m * n;
    ELEMENT total{};
    for (int k = 0; k < length; ++k) {
      const ELEMENT left = from[k * along + i * across], right = from[k * along + j * across];
      total += m >= n ? conjugated(left) * right : left * conjugated(right);
    }
    y[flat] = i == j ? total + of_part<ELEMENT>(static_cast<part_t<ELEMENT>>(weight)) : total;
  }
}

// y (n by width) = a^H b, of a (m by n) and b (m by width); where values are given, row i is divided by the i-th of them, and
// zero where that is not above limit times the first.
GD_KERNEL(adjoint_product)(const ELEMENT* a, const ELEMENT* b, ELEMENT* y, i64 count, int m, int n, i64 width, const part_t<ELEMENT>* values, int divides, double limit) {
  typedef part_t<ELEMENT> P;
  GD_GRID_LOOP(i64, flat, count) {
    const i64 column = flat % width, i = flat / width % n, matrix = flat / width / n;
    ELEMENT total{};
    for (int k = 0; k < m; ++k)
      total += conjugated(a[(matrix * m + k) * n + i]) * b[(matrix * m + k) * width + column];
    if (divides) {
      const P value = values[matrix * n + i], most = values[matrix * n];
      total = value > static_cast<P>(limit) * most ? total / of_part<ELEMENT>(value) : ELEMENT{};
    }
    y[flat] = total;
  }
}

// y (n by width) = a b, of a (n by m) and b (m by width).
GD_KERNEL(plain_product)(const ELEMENT* a, const ELEMENT* b, ELEMENT* y, i64 count, int m, int n, i64 width) {
  GD_GRID_LOOP(i64, flat, count) {
    const i64 column = flat % width, i = flat / width % n, matrix = flat / width / n;
    ELEMENT total{};
    for (int k = 0; k < m; ++k) total += a[(matrix * n + i) * m + k] * b[(matrix * m + k) * width + column];
    y[flat] = total;
  }
}
