// Candidates that are target classes.

GD_KERNEL(mark_hits)(const i64* targets, const i64* candidates, u8* flags, i64 count, i64 width, i64 targets_per_row) {
  GD_GRID_LOOP(i64, flat, count) {
    const i64 row = flat / width, id = candidates[flat - row * width];
    bool hit = false;
    for (i64 k = 0; k < targets_per_row; ++k) hit |= targets[row * targets_per_row + k] == id;
    flags[flat] = hit;
  }
}

GD_KERNEL(write_hits)(const i64* places, i32* rows, i64* ids, float* weights, i64 count, i64 width) {
  GD_GRID_LOOP(i64, i, count) {
    rows[i] = static_cast<i32>(places[i] / width);
    ids[i] = places[i] % width;
    weights[i] = limits<float>::lowest();
  }
}
