// The best of each tile of long rows, before the best of those are chosen. Macro: KEY: u32 or u64.

// out[row, tile * size + i]: the keys and values of a row, which ends within a tile; behind its end the largest key.
GD_KERNEL(tile_rows)(const KEY* keys, const i32* values, KEY* out, i32* out_values, i64 rows, i64 n, i64 padded) {
  GD_GRID_LOOP(i64, i, rows * padded) {
    const i64 row = i / padded, at = i - row * padded;
    out[i] = at < n ? keys[row * n + at] : static_cast<KEY>(~static_cast<KEY>(0));
    out_values[i] = at >= n ? 0x7fffffff : values == nullptr ? static_cast<i32>(at) : values[row * n + at];
  }
}

// The first k of every tile.
GD_KERNEL(head_of_tiles)(const KEY* keys, const i32* values, KEY* out, i32* out_values, i64 tiles, i64 size, i64 k) {
  GD_GRID_LOOP(i64, i, tiles * k) {
    const i64 tile = i / k, from = tile * size + (i - tile * k);
    out[i] = keys[from];
    out_values[i] = values[from];
  }
}
