// Places whose flag is set, in order. Tiles are of 1024 flags. After block.cuh.

namespace gd {

constexpr int CHOOSE_ITEMS = 4;
constexpr int CHOOSE_TILE = 256 * CHOOSE_ITEMS;

struct add_op { GD_DEVICE i64 operator()(i64 a, i64 b) const { return a + b; } };

}  // namespace gd

GD_KERNEL(count_chosen)(const u8* flags, i64* counts, i64 n, i64 tiles) {
  for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    i64 count = 0;
    for (int j = 0; j < CHOOSE_ITEMS; ++j) {
      const i64 i = tile * CHOOSE_TILE + j * 256 + threadIdx.x;
      count += i < n && flags[i];
    }
    count = block_reduce(count, add_op());
    if (threadIdx.x == 0) counts[tile] = count;
  }
}

// starts: the counts as sums of those before them
GD_KERNEL(write_chosen)(const u8* flags, const i64* starts, i64* places, i64 n, i64 tiles) {
  for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const i64 own = tile * CHOOSE_TILE + threadIdx.x * CHOOSE_ITEMS;
    i64 count = 0;
    for (i64 i = own; i < own + CHOOSE_ITEMS; ++i) count += i < n && flags[i];
    i64 to = starts[tile] + block_exclusive_scan(count, add_op(), i64(0));
    for (i64 i = own; i < own + CHOOSE_ITEMS; ++i)
      if (i < n && flags[i]) places[to++] = i;
  }
}
