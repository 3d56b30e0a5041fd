// Diagonals into matrices. UNIT: a type of as many bytes as an element has.

GD_KERNEL(set_diag)(const UNIT* diagonal, UNIT* y, i64 count, i64 length, i64 m, i64 n) {
  GD_GRID_LOOP(i64, flat, count) {
    const i64 matrix = flat / length, i = flat - matrix * length;
    y[matrix * m * n + i * (n + 1)] = diagonal[flat];
  }
}
