// Where candidates are target classes: pairs of a row and a candidate, by row, then by candidate.

// places[pair]: whether it is one; and a 0 behind the last.
GD_KERNEL(mark)(const i64* targets, const i64* candidates, i32* places, i64 pairs, i64 count, i64 width) {
  GD_GRID_LOOP(i64, pair, pairs + 1) {
    bool hit = false;
    if (pair < pairs) {
      const i64 row = pair / count, candidate = candidates[pair - row * count];
      for (i64 i = 0; i < width && !hit; ++i) hit = targets[row * width + i] == candidate;
    }
    places[pair] = hit;
  }
}

// places[pair]: how many came before.
GD_KERNEL(write)(const i32* places, i32* rows, i64* ids, float* weights, i64 pairs, i64 count) {
  GD_GRID_LOOP(i64, pair, pairs) {
    const i32 at = places[pair];
    if (places[pair + 1] == at) continue;
    rows[at] = static_cast<i32>(pair / count);
    ids[at] = pair % count;
    weights[at] = limits<float>::lowest();
  }
}
