// Elements moved from one set of places to another, both told by strides. E: an element, see word.cuh.

namespace gd {

// Axes from the outermost; strides in elements, 0 where an axis is repeated, negative where it runs backwards.
struct Places {
  i64 dims[MAX_RANK], to[MAX_RANK], from[MAX_RANK];
};

// The same of fewer than 2^31 elements. Where 2^shift elements may be moved as one, wide_last is how many such there are on the
// last axis, whose strides are 1.
struct NarrowPlaces {
  divider dims[MAX_RANK];
  i32 to[MAX_RANK], from[MAX_RANK];
  divider wide_last;
};

template <class W> GD_DEVICE void move_narrow(W* to, const W* from, u32 n, int rank, const NarrowPlaces& at, int shift) {
  GD_GRID_LOOP(u32, i, n) {
    u32 left = i;
    i32 there = 0, here = 0;
#pragma unroll
    for (int axis = MAX_RANK - 1; axis >= 0; --axis) {
      if (axis >= rank) continue;
      const bool last = axis == rank - 1 && shift > 0;
      const divider dim = last ? at.wide_last : at.dims[axis];
      const u32 above = dim.div(left);
      const i32 place = static_cast<i32>(left - above * dim.divisor);
      there += last ? place : place * (at.to[axis] >> shift);
      here += last ? place : place * (at.from[axis] >> shift);
      left = above;
    }
    to[there] = from[here];
  }
}

template <class W> GD_DEVICE void move_any(W* to, const W* from, i64 n, int rank, const Places& at) {
  GD_GRID_LOOP(i64, i, n) {
    i64 left = i, there = 0, here = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const i64 above = left / at.dims[axis], place = left - above * at.dims[axis];
      there += place * at.to[axis];
      here += place * at.from[axis];
      left = above;
    }
    to[there] = from[here];
  }
}

// An array whose fastest axis in the source is another one than in the target, in tiles of 32 by 32 through shared memory.
// Axis 0: the fastest in the source, of `rows`; axis 1: the fastest in the target, of `columns`. at: the other axes.
template <class W>
GD_DEVICE void move_tiles(W* to, const W* from, i64 rows, i64 columns, i64 to_row, i64 from_column, int rank, const Places& at) {
  __shared__ W tile[32][33];
  const i64 down = ceil_div<i64>(rows, 32), across = ceil_div<i64>(columns, 32);
  i64 left = blockIdx.x;
  const i64 column = left % across * 32;
  left /= across;
  const i64 row = left % down * 32;
  left /= down;
  for (int axis = rank - 1; axis >= 0; --axis) {
    const i64 above = left / at.dims[axis], place = left - above * at.dims[axis];
    to += place * at.to[axis];
    from += place * at.from[axis];
    left = above;
  }
  const int x = threadIdx.x;
#pragma unroll
  for (int y = threadIdx.y; y < 32; y += 8)
    if (row + x < rows && column + y < columns) tile[y][x] = from[(column + y) * from_column + row + x];
  __syncthreads();
#pragma unroll
  for (int y = threadIdx.y; y < 32; y += 8)
    if (row + y < rows && column + x < columns) to[(row + y) * to_row + column + x] = tile[x][y];
}

}  // namespace gd

GD_KERNEL(move_32)(E* to, const E* from, u32 n, int rank, NarrowPlaces at, int shift) {
  if constexpr (SIZE < 16) {
    const u64 both = reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from);
    if (shift > 0 && both % 16 == 0) {
      typedef pack<E, 16 / SIZE> W;
      return move_narrow(reinterpret_cast<W*>(to), reinterpret_cast<const W*>(from), n >> shift, rank, at, shift);
    }
  }
  move_narrow(to, from, n, rank, at, 0);
}
GD_KERNEL(move_64)(E* to, const E* from, i64 n, int rank, Places at) { move_any(to, from, n, rank, at); }
GD_KERNEL(tiles)(E* to, const E* from, i64 rows, i64 columns, i64 to_row, i64 from_column, int rank, Places at) {
  move_tiles(to, from, rows, columns, to_row, from_column, rank, at);
}
