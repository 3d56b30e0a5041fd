// Row-major places as index tuples. Macro: KEY: u32 or u64.

namespace gd {
struct Dims { i64 at[MAX_RANK]; };
}

// tuples[i]: coordinates of a place within dims, of which one of 0 counts as 1.
GD_KERNEL(spread_places)(const KEY* places, i64* tuples, const u64* bad, i64 n, int rank, Dims dims) {
  if (*bad != ~0ull) return;
  GD_GRID_LOOP(i64, i, n) {
    u64 left = places[i];
    for (int axis = rank - 1; axis >= 0; --axis) {
      const u64 size = dims.at[axis] > 0 ? static_cast<u64>(dims.at[axis]) : 1, above = left / size;
      tuples[i * rank + axis] = static_cast<i64>(left - above * size);
      left = above;
    }
  }
}
