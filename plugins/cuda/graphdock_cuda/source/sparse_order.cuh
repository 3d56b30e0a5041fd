// Elements of a sparse tensor in another order. Macro: TX: type of elements.

GD_KERNEL(take_ordered)(const i64* tuples, const TX* values, const i32* order, i64* out_tuples, TX* out_values, const u64* bad, i64 n,
                        int rank) {
  if (*bad != ~0ull) return;
  GD_GRID_LOOP(i64, i, n) {
    for (int axis = 0; axis < rank; ++axis) out_tuples[i * rank + axis] = tuples[order[i] * static_cast<i64>(rank) + axis];
    out_values[i] = values[order[i]];
  }
}
