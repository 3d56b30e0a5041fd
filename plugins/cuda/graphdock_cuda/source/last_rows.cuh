// Rows written where sorted keys say; of those of one key the last. Macros: WORD: a word as wide as an element; KEY: u32 or u64.

GD_KERNEL(last_rows)(const WORD* rows, const i32* order, const KEY* keys, WORD* out, const u64* bad, i64 n, i64 width, i64 limit, i64 row_step,
                     int step) {
  if (*bad != ~0ull) return;
  GD_GRID_LOOP(i64, i, n * width) {
    const i64 place = i / width, j = i - place * width;
    const KEY key = keys[place];
    if (static_cast<u64>(key) >= static_cast<u64>(limit) || (place + 1 < n && keys[place + 1] == key)) continue;
    out[static_cast<i64>(key) * width + j] = rows[order[place] * row_step + j * step];
  }
}
