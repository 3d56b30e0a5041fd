// Where the elements of sets stand. Macro: KEY: u32 or u64, of groups.

namespace gd {
struct Dims { i64 at[MAX_RANK]; };
}

// Index tuples of `rank` numbers: coordinates of the group, and the place within it; widest: the largest set.
GD_KERNEL(set_places)(const KEY* groups, i64* tuples, i64* widest, i64 n, int rank, Dims dims) {
  GD_GRID_LOOP(i64, i, n) {
    const KEY group = groups[i];
    i64 low = 0, high = i;
    while (low < high) {
      const i64 middle = (low + high) / 2;
      if (groups[middle] < group) low = middle + 1;
      else high = middle;
    }
    u64 left = group;
    for (int axis = rank - 2; axis >= 0; --axis) {
      const u64 size = static_cast<u64>(dims.at[axis]), above = left / size;
      tuples[i * rank + axis] = static_cast<i64>(left - above * size);
      left = above;
    }
    tuples[i * rank + rank - 1] = i - low;
    if (i + 1 == n || groups[i + 1] != group) atomicMax(widest, i - low + 1);
  }
}

// The shape of the result: dims, and the largest set.
GD_KERNEL(set_shape)(i64* shape, const i64* widest, int rank, Dims dims) {
  for (int axis = 0; axis < rank - 1; ++axis) shape[axis] = dims.at[axis];
  shape[rank - 1] = *widest;
}
