// One value at an index, another one elsewhere. E: an element, see word.cuh; INDEX: type of the indices.

// y[before, depth, after] of indices[before, after].
GD_KERNEL(one_hot)(const INDEX* indices, const E* on, const E* off, E* y, i64 n, i64 depth, i64 after) {
  const E yes = *on, no = *off;
  GD_GRID_LOOP(i64, i, n) {
    const i64 row = i / after, before = row / depth;
    y[i] = static_cast<i64>(indices[before * after + (i - row * after)]) == row - before * depth ? yes : no;
  }
}
