// Segment ids in ascending order, and rows chosen by indices, checked. Macros: INDEX: i32 or i64; KEY: u32 or u64.

// keys: the ids. facts[0]: the first place whose id is below 0, below the one before it, or not below the limit; facts[1]: the last id.
GD_KERNEL(check_sorted)(const INDEX* ids, KEY* keys, i64* facts, i64 n, i64 limit) {
  GD_GRID_LOOP(i64, i, n) {
    const i64 id = ids[i];
    keys[i] = static_cast<KEY>(id);
    if (id < (i == 0 ? 0 : static_cast<i64>(ids[i - 1])) || id >= limit) atomicMin(reinterpret_cast<u64*>(facts), static_cast<u64>(i));
    if (i == n - 1) facts[1] = id;
  }
}

GD_KERNEL(choose_rows)(const INDEX* indices, i32* rows, u64* bad, i64 n, i64 size) {
  GD_GRID_LOOP(i64, i, n) {
    const i64 row = indices[i];
    if (row < 0 || row >= size) atomicMin(bad, static_cast<u64>(i));
    rows[i] = static_cast<i32>(row);
  }
}

GD_KERNEL(report_rows)(const INDEX* indices, const u64* bad, i64* words, i64 code) {
  if (*bad != ~0ull) report(words, code, static_cast<i64>(*bad), indices[*bad]);
}
