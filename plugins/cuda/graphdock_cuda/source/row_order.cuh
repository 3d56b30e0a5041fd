// Row numbers as keys of a sort. After block.cuh; INDEX is the type of row numbers.

// The keys, or a refusal. One block.
GD_KERNEL(begin_order)(const INDEX* rows, u32* keys, u32* refused, i64 n, i64 limit, i64* words, i64 code) {
  i64 low = 0, high = 0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    const i64 row = rows[i];
    keys[i] = static_cast<u32>(row);
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
