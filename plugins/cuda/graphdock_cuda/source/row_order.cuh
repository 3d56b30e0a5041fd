// A stable order of row numbers: a radix sort by eight bits at a time, from the lowest, which keeps what is equal in its order.
// After block.cuh, with INDEX defined, the type of row numbers. Blocks have 256 threads; each sorts a tile of TILE numbers, its warps one part of the tile after the other.

namespace gd {

constexpr int RADIX = 256, THREADS = 256, WARPS = THREADS / 32, TILE = 2048, PART = TILE / WARPS;

GD_DEVICE u32 lanes_below() { return (1u << lane_id()) - 1; }

// How often each digit occurs in each warp's part of a tile.
GD_DEVICE void count_digits(const u32* keys, i64 begin, i64 n, int shift, u32 (*counts)[RADIX]) {
  for (int i = threadIdx.x; i < WARPS * RADIX; i += THREADS) counts[i / RADIX][i % RADIX] = 0;
  __syncthreads();
  const i64 part = begin + warp_id() * PART;
  for (int i = lane_id(); i < PART; i += 32)
    if (part + i < n) atomicAdd(&counts[warp_id()][keys[part + i] >> shift & (RADIX - 1)], 1u);
  __syncthreads();
}

// Put a tile's pairs where their digits begin: places[digit], for all tiles; counts are used up.
GD_DEVICE void place_digits(const u32* keys, const u32* order, u32* out_keys, u32* out_order, i64 begin, i64 n, int shift,
                            u32 (*counts)[RADIX], const u32* places) {
  for (int digit = threadIdx.x; digit < RADIX; digit += THREADS) {
    u32 at = places[digit];
    for (int warp = 0; warp < WARPS; ++warp) {
      const u32 own = counts[warp][digit];
      counts[warp][digit] = at;
      at += own;
    }
  }
  __syncthreads();
  const i64 part = begin + warp_id() * PART;
  for (int i = lane_id(); i < PART; i += 32) {
    const bool here = part + i < n;
    const u32 key = here ? keys[part + i] : 0;
    const u32 digit = here ? key >> shift & (RADIX - 1) : RADIX;
    const u32 alike = __match_any_sync(GD_FULL_MASK, digit), before = __popc(alike & lanes_below());
    u32 at = 0;
    if (here) at = counts[warp_id()][digit] + before;
    __syncwarp();
    if (here && before == 0) counts[warp_id()][digit] += __popc(alike);
    __syncwarp();
    if (here) {
      out_keys[at] = key;
      out_order[at] = order[part + i];
    }
  }
}

}  // namespace gd

// Row numbers as keys in their order, or a refusal. One block.
GD_KERNEL(begin_order)(const INDEX* rows, u32* keys, u32* order, u32* refused, i64 n, i64 limit, i64* words, i64 code) {
  i64 low = 0, high = 0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    const i64 row = rows[i];
    keys[i] = static_cast<u32>(row);
    order[i] = static_cast<u32>(i);
    low = row < low ? row : low;
    high = row > high ? row : high;
  }
  low = block_reduce(low, min_op());
  high = block_reduce(high, max_op());
  if (threadIdx.x != 0) return;
  const bool bad = low < 0 || high >= limit;
  *refused = bad;
  if (bad) {
    words[0] = low < 0 ? low : high;
    words[1] = limit;
    __threadfence_system();
    words[2] = code;
  }
}

// Few enough for one block: all digits in one launch, to and fro between the two pairs of buffers. The result lies in keys and
// order after an even number of passes, else in the others.
GD_KERNEL(order_tile)(u32* keys, u32* order, u32* other_keys, u32* other_order, i64 n, int passes) {
  __shared__ u32 counts[WARPS][RADIX];
  __shared__ u32 places[RADIX];
  for (int pass = 0; pass < passes; ++pass) {
    u32 *from = pass % 2 ? other_keys : keys, *to = pass % 2 ? keys : other_keys;
    u32 *from_order = pass % 2 ? other_order : order, *to_order = pass % 2 ? order : other_order;
    count_digits(from, 0, n, 8 * pass, counts);
    u32 own = 0;
    for (int warp = 0; warp < WARPS; ++warp) own += counts[warp][threadIdx.x];
    const u32 at = block_exclusive_scan(own, sum_op(), 0u);
    places[threadIdx.x] = at;
    __syncthreads();
    place_digits(from, from_order, to, to_order, 0, n, 8 * pass, counts, places);
    __syncthreads();
  }
}

// One pass over many tiles: counts per digit and tile ...
GD_KERNEL(count_tiles)(const u32* keys, u32* totals, i64 n, int shift) {
  __shared__ u32 counts[WARPS][RADIX];
  count_digits(keys, static_cast<i64>(blockIdx.x) * TILE, n, shift, counts);
  u32 own = 0;
  for (int warp = 0; warp < WARPS; ++warp) own += counts[warp][threadIdx.x];
  totals[static_cast<i64>(threadIdx.x) * gridDim.x + blockIdx.x] = own;
}
// ... where each begins, digit by digit (one block) ...
GD_KERNEL(scan_tiles)(u32* totals, i64 n) {
  u32 before = 0;
  for (i64 begin = 0; begin < n; begin += blockDim.x) {
    const i64 i = begin + threadIdx.x;
    u32 total;
    const u32 at = block_exclusive_scan(i < n ? totals[i] : 0u, sum_op(), 0u, &total);
    if (i < n) totals[i] = before + at;
    before += total;
    __syncthreads();
  }
}
// ... and all moved there.
GD_KERNEL(place_tiles)(const u32* keys, const u32* order, u32* out_keys, u32* out_order, const u32* totals, i64 n, int shift) {
  __shared__ u32 counts[WARPS][RADIX];
  __shared__ u32 places[RADIX];
  const i64 begin = static_cast<i64>(blockIdx.x) * TILE;
  places[threadIdx.x] = totals[static_cast<i64>(threadIdx.x) * gridDim.x + blockIdx.x];
  count_digits(keys, begin, n, shift, counts);
  place_digits(keys, order, out_keys, out_order, begin, n, shift, counts, places);
}
