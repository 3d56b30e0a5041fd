// Levenshtein's distance between sequences, a thread for each pair; row by row of the table of distances between beginnings (Wagner and
// Fischer, 1974). Macro: TX: type of elements.

// Elements first_order[first_starts[g]] .. of sequence g; rows: room for one number more per sequence than the second ones have elements.
GD_KERNEL(edit_distance)(const TX* first, const i32* first_order, const i64* first_starts, const TX* second, const i32* second_order,
                         const i64* second_starts, i32* rows, float* out, const u64* first_bad, const u64* second_bad, i64 groups,
                         int normalize) {
  if (*first_bad != ~0ull || *second_bad != ~0ull) return;
  GD_GRID_LOOP(i64, g, groups) {
    const i64 a = first_starts[g], b = second_starts[g], n = first_starts[g + 1] - a, m = second_starts[g + 1] - b;
    i32* row = rows + b + g;
    for (i64 j = 0; j <= m; ++j) row[j] = static_cast<i32>(j);
    for (i64 i = 0; i < n; ++i) {
      const compute_t<TX> x = to_compute(first[first_order[a + i]]);
      i32 before = row[0];
      row[0] = static_cast<i32>(i + 1);
      for (i64 j = 0; j < m; ++j) {
        const i32 above = row[j + 1], swapped = before + !(x == to_compute(second[second_order[b + j]]));
        const i32 moved = (above < row[j] ? above : row[j]) + 1;
        row[j + 1] = moved < swapped ? moved : swapped;
        before = above;
      }
    }
    const double distance = row[m];
    out[g] = static_cast<float>(!normalize ? distance : m ? distance / static_cast<double>(m) : n ? limits<double>::infinity() : 0.0);
  }
}
