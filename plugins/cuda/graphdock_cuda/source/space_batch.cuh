// Blocks of spatial dims laid out along the batch, and back. E: an element, see word.cuh.
//
// An element of space[batch, space..., rest] stands in batch form [position * batch + b, within..., rest], where position counts the
// places in a block: its coordinate plus the margin is within * size + place.

struct Blocks { i64 space[MAX_RANK], within[MAX_RANK], sizes[MAX_RANK], before[MAX_RANK]; };

GD_KERNEL(space_to_batch)(const E* x, E* y, i64 n, int m, i64 batch, i64 rest, Blocks at) {
  GD_GRID_LOOP(i64, i, n) {
    i64 left = i / rest, coords[MAX_RANK];
    const i64 last = i - left * rest;
    for (int k = m - 1; k >= 0; --k) {
      const i64 above = left / at.within[k];
      coords[k] = left - above * at.within[k];
      left = above;
    }
    i64 position = left / batch, from = 0, step = rest;
    const i64 b = left - position * batch;
    bool inside = true;
    for (int k = m - 1; k >= 0; --k) {
      const i64 above = position / at.sizes[k];
      const i64 place = coords[k] * at.sizes[k] + (position - above * at.sizes[k]) - at.before[k];
      position = above;
      inside = inside && place >= 0 && place < at.space[k];
      from += place * step;
      step *= at.space[k];
    }
    y[i] = inside ? x[b * step + from + last] : E{};
  }
}

GD_KERNEL(batch_to_space)(const E* x, E* y, i64 n, int m, i64 batch, i64 rest, Blocks at) {
  GD_GRID_LOOP(i64, i, n) {
    i64 left = i / rest, from = 0, step = rest, position = 0, positions = 1;
    const i64 last = i - left * rest;
    for (int k = m - 1; k >= 0; --k) {
      const i64 above = left / at.space[k], place = left - above * at.space[k] + at.before[k], within = place / at.sizes[k];
      left = above;
      from += within * step;
      step *= at.within[k];
      position += (place - within * at.sizes[k]) * positions;
      positions *= at.sizes[k];
    }
    y[i] = x[(position * batch + left) * step + from + last];
  }
}
