// The label of the most probable class of each step, a block per row. After ctc.cuh.

GD_KERNEL(ctc_best)(const T* x, const i32* lengths, i32* best, i64* counts, T* log_probability, Sequences s, int merge, i64* words,
                    i64 code) {
  const i64 row = blockIdx.x, blank = s.classes - 1;
  const i64 length = length_of(lengths, row, s, words, code);
  double sum = 0.0;
  for (i64 t = threadIdx.x; t < length; t += blockDim.x) {
    const T* logits = x + (t * s.rows + row) * s.classes;
    i64 found = 0;
    for (i64 c = 1; c < s.classes; ++c)
      if (load(logits + c) > load(logits + found)) found = c;
    best[row * s.steps + t] = static_cast<i32>(found);
    sum += static_cast<double>(load(logits + found));
  }
  sum = block_reduce(sum, sum_op());
  __syncthreads();
  i64 count = 0;
  for (i64 t = threadIdx.x; t < length; t += blockDim.x) {
    const i32 c = best[row * s.steps + t];
    count += c != blank && !(merge && t > 0 && best[row * s.steps + t - 1] == c);
  }
  count = block_reduce(count, sum_op());
  if (threadIdx.x == 0) {
    counts[row] = count;
    store(log_probability + row, -sum);
  }
}
GD_KERNEL(ctc_labels)(const i32* best, const i32* lengths, const i64* counts, i64* indices, i64* values, i64* shape,
                       i64 widest, Sequences s, int merge) {
  const i64 row = blockIdx.x, blank = s.classes - 1, length = lengths[row];
  i64 begin = 0, done = 0;
  if (row == 0 && threadIdx.x == 0) {
    shape[0] = s.rows;
    shape[1] = widest;
  }
  for (i64 other = threadIdx.x; other < row; other += blockDim.x) begin += counts[other];
  begin = block_reduce(begin, sum_op());
  for (i64 chunk = 0; chunk < length; chunk += blockDim.x) {
    const i64 t = chunk + threadIdx.x;
    const i32 c = t < length ? best[row * s.steps + t] : static_cast<i32>(blank);
    const i64 label = c != blank && !(merge && t > 0 && best[row * s.steps + t - 1] == c);
    i64 here = 0;
    const i64 place = done + block_exclusive_scan(label, sum_op(), static_cast<i64>(0), &here);
    if (label) {
      indices[2 * (begin + place)] = row;
      indices[2 * (begin + place) + 1] = place;
      values[begin + place] = c;
    }
    done += here;
    __syncthreads();
  }
}
