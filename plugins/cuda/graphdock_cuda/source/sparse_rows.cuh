// Empty rows of a sparse matrix or tensor. Macros: TX: type of elements; KEY: of its rows' numbers.

// empty[r]: whether row r has no element; missing[r] the same as a number, with room for a last 0.
GD_KERNEL(mark_empty)(const i64* starts, bool* empty, i64* missing, i64 rows) {
  GD_GRID_LOOP(i64, r, rows + 1) {
    const bool none = r < rows && starts[r] == starts[r + 1];
    if (r < rows) empty[r] = none;
    missing[r] = none;
  }
}

// missing: the sums of those before each row. Elements go behind what was missing before them, in the order of their rows.
GD_KERNEL(place_elements)(const i64* tuples, const TX* values, const i32* order, const KEY* keys, const i64* missing, i64* out_tuples,
                          TX* out_values, i64* reverse, const u64* bad, i64 n, int rank) {
  if (*bad != ~0ull) return;
  GD_GRID_LOOP(i64, p, n) {
    const i64 from = order[p], to = p + missing[keys[p]];
    for (int axis = 0; axis < rank; ++axis) out_tuples[to * rank + axis] = tuples[from * rank + axis];
    out_values[to] = values[from];
    reverse[from] = to;
  }
}
GD_KERNEL(place_missing)(const i64* starts, const i64* missing, const TX* value, i64* out_tuples, TX* out_values, i64 rows, int rank) {
  GD_GRID_LOOP(i64, r, rows) {
    if (missing[r + 1] == missing[r]) continue;
    const i64 to = starts[r] + missing[r];
    for (int axis = 0; axis < rank; ++axis) out_tuples[to * rank + axis] = axis == 0 ? r : 0;
    out_values[to] = *value;
  }
}
