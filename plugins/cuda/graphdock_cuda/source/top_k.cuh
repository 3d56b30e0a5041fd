// Elements of rows at places that an order says, and comparisons within rows. Macros: TX: type of elements; OUT: i32 or i64.

// The first k of each row of n.
GD_KERNEL(take_first)(const TX* x, const i32* order, TX* values, OUT* places, i64 rows, i64 n, i64 row_step, i64 k) {
  GD_GRID_LOOP(i64, i, rows * k) {
    const i64 row = i / k, place = order[row * row_step + (i - row * k)];
    values[i] = x[row * n + place];
    places[i] = static_cast<OUT>(place);
  }
}

// Element `at` of each sorted row.
GD_KERNEL(take_nth)(const TX* x, const i32* order, TX* values, i64 rows, i64 n, i64 at) {
  GD_GRID_LOOP(i64, row, rows) values[row] = x[row * n + order[row * n + at]];
}
