// Rows of a matrix, each by the 32 threads of a warp or by all threads of a block. After block.cuh.

namespace gd {

struct warp_group {
  static GD_DEVICE int size() { return 32; }
  static GD_DEVICE int thread() { return lane_id(); }
  static GD_DEVICE i64 first() { return static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_id(); }
  static GD_DEVICE i64 step() { return static_cast<i64>(gridDim.x) * (blockDim.x >> 5); }
  template <class T, class Op> static GD_DEVICE T reduce(T value, Op op) { return warp_reduce_all(value, op); }
};

struct block_group {
  static GD_DEVICE int size() { return blockDim.x; }
  static GD_DEVICE int thread() { return threadIdx.x; }
  static GD_DEVICE i64 first() { return blockIdx.x; }
  static GD_DEVICE i64 step() { return gridDim.x; }
  template <class T, class Op> static GD_DEVICE T reduce(T value, Op op) { return block_reduce(value, op); }
};

}  // namespace gd

// The rows of a group, and the elements of a row that a thread has.
#define GD_ROWS(G, row, rows) for (i64 row = G::first(); row < (rows); row += G::step())
#define GD_ROW(G, i, width) for (i64 i = G::thread(); i < (width); i += G::size())
