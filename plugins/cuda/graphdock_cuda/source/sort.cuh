// Stable sorts of rows of unsigned keys, each with the number that it came with. After block.cuh.
//
// Short rows: a block sorts a row in shared memory by a bitonic network over pairs of key and place, which makes it stable. Long
// rows: passes over 8 bits each, from the lowest; a pass counts digits per tile, and puts every key behind those of lower digits,
// of earlier tiles, of earlier warps, of earlier lanes.
//
// Macro: KEY: u32 or u64.

namespace gd {

constexpr int SORT_ROW = 2048;     // longest row of the network
constexpr int SORT_ROUNDS = 16;    // keys of each thread in a tile
constexpr int SORT_WARPS = 8;
constexpr int SORT_TILE = SORT_ROUNDS * SORT_WARPS * 32;

}  // namespace gd

// values: what the keys came with, or null for their places. padded: a power of two that n fits in.
GD_KERNEL(sort_short)(const KEY* keys, const i32* values, KEY* keys_out, i32* values_out, i64 rows, int n, int padded) {
  __shared__ KEY key[SORT_ROW];
  __shared__ i32 place[SORT_ROW];
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    for (int i = threadIdx.x; i < padded; i += blockDim.x) {
      key[i] = i < n ? keys[row * n + i] : static_cast<KEY>(~static_cast<KEY>(0));
      place[i] = i;
    }
    for (int size = 2; size <= padded; size *= 2) {
      for (int gap = size / 2; gap > 0; gap /= 2) {
        __syncthreads();
        for (int i = threadIdx.x; i < padded / 2; i += blockDim.x) {
          const int low = 2 * i - (i & (gap - 1)), high = low + gap;
          const KEY a = key[low], b = key[high];
          const i32 p = place[low], q = place[high];
          const bool above = a > b || (a == b && p > q), ascending = (low & size) == 0;
          if (above == ascending) {
            key[low] = b, key[high] = a;
            place[low] = q, place[high] = p;
          }
        }
      }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
      keys_out[row * n + i] = key[i];
      values_out[row * n + i] = values == nullptr ? place[i] : values[row * n + place[i]];
    }
    __syncthreads();
  }
}

// counts[row, digit, tile]
GD_KERNEL(sort_count)(const KEY* keys, i32* counts, i64 n, i64 tiles, int shift) {
  __shared__ i32 count[256];
  const i64 row = blockIdx.x / tiles, tile = blockIdx.x - row * tiles;
  count[threadIdx.x] = 0;
  __syncthreads();
  const i64 end = (tile + 1) * SORT_TILE < n ? (tile + 1) * SORT_TILE : n;
  for (i64 i = tile * SORT_TILE + threadIdx.x; i < end; i += blockDim.x)
    atomicAdd(&count[static_cast<int>(keys[row * n + i] >> shift) & 255], 1);
  __syncthreads();
  counts[(row * 256 + threadIdx.x) * tiles + tile] = count[threadIdx.x];
}

// starts: the counts as sums of those before them, in each row
GD_KERNEL(sort_place)(const KEY* keys, const i32* values, const i32* starts, KEY* keys_out, i32* values_out, i64 n, i64 tiles, int shift) {
  __shared__ i32 count[SORT_WARPS][256];
  const i64 row = blockIdx.x / tiles, tile = blockIdx.x - row * tiles;
  for (int warp = 0; warp < SORT_WARPS; ++warp) count[warp][threadIdx.x] = 0;
  __syncthreads();
  const int warp = warp_id(), lane = lane_id();
  const i64 begin = tile * SORT_TILE + warp * SORT_ROUNDS * 32;
  KEY own[SORT_ROUNDS];
  i32 rank[SORT_ROUNDS];
#pragma unroll
  for (int round = 0; round < SORT_ROUNDS; ++round) {
    const i64 i = begin + round * 32 + lane;
    if (begin + round * 32 >= n) break;
    own[round] = i < n ? keys[row * n + i] : KEY(0);
    const int digit = i < n ? static_cast<int>(own[round] >> shift) & 255 : 256;
    const u32 alike = __match_any_sync(GD_FULL_MASK, digit);
    const int before = __popc(alike & ((1u << lane) - 1));
    const i32 base = digit < 256 ? count[warp][digit] : 0;
    rank[round] = base + before;
    __syncwarp();
    if (digit < 256 && before == 0) count[warp][digit] = base + __popc(alike);
    __syncwarp();
  }
  __syncthreads();
  i32 at = starts[(row * 256 + threadIdx.x) * tiles + tile];
  for (int other = 0; other < SORT_WARPS; ++other) {
    const i32 counted = count[other][threadIdx.x];
    count[other][threadIdx.x] = at;
    at += counted;
  }
  __syncthreads();
#pragma unroll
  for (int round = 0; round < SORT_ROUNDS; ++round) {
    const i64 i = begin + round * 32 + lane;
    if (i >= n) break;
    const i64 to = row * n + count[warp][static_cast<int>(own[round] >> shift) & 255] + rank[round];
    keys_out[to] = own[round];
    values_out[to] = values == nullptr ? static_cast<i32>(i) : values[row * n + i];
  }
}
