// Classes drawn at random, and how often each is expected. KIND: 0 evenly, 1 by the logarithm, 2 by weights: sums holds their running
// sums and behind these the weights; the last sum is NaN where nothing can be drawn. After philox.cuh and running_sums.cuh.

GD_DEVICE i64 class_of(double u, const double* sums, i64 classes, double width) {
  if (KIND == 0) return static_cast<i64>(u * static_cast<double>(classes));
  if (KIND == 1) {
    const i64 found = static_cast<i64>(exp(u * width)) - 1;
    return found < classes - 1 ? found : classes - 1;
  }
  return first_above(sums, classes, u * sums[classes - 1]);
}
GD_DEVICE double probability_of(i64 id, const double* sums, i64 classes, double width) {
  if (KIND == 0) return 1.0 / static_cast<double>(classes);
  if (KIND == 1) return log(static_cast<double>(id + 2) / static_cast<double>(id + 1)) / width;
  return sums[classes + id] / sums[classes - 1];
}

// One block of 256 threads. Draws are looked at 256 at a time; with `unique` those of a class that came before are left out.
GD_KERNEL(draw)(GD_STREAM, i64* y, i64* tries, i64 count, int unique, const double* sums, i64 classes, double width) {
  __shared__ i64 drawn[256];
  GD_OPEN_STREAM(stream);
  const bool possible = KIND != 2 || sums[classes - 1] == sums[classes - 1];
  if (!unique || !possible) {
    for (i64 i = threadIdx.x; i < count; i += 256) y[i] = possible ? class_of(fraction(stream.word(i)), sums, classes, width) : 0;
    if (threadIdx.x == 0) *tries = count;
    return;
  }
  i64 found = 0;
  for (i64 start = 0; found < count; start += 256) {
    const i64 mine = class_of(fraction(stream.word(start + threadIdx.x)), sums, classes, width);
    drawn[threadIdx.x] = mine;
    __syncthreads();
    bool fresh = true;
    for (i64 i = 0; i < found && fresh; ++i) fresh = y[i] != mine;
    for (int i = 0; i < static_cast<int>(threadIdx.x) && fresh; ++i) fresh = drawn[i] != mine;
    i64 all = 0;
    const i64 place = found + block_exclusive_scan<i64>(fresh, sum_op(), 0, &all);
    if (fresh && place < count) y[place] = mine;
    if (fresh && place == count - 1) *tries = start + threadIdx.x + 1;
    found += all;
    __syncthreads();
  }
}

GD_KERNEL(expect)
(const i64* ids, float* y, i64 n, const i64* tries, int unique, const double* sums, i64 classes, double width, i64* words, i64 code) {
  const double times = static_cast<double>(*tries);
  GD_GRID_LOOP(i64, i, n) {
    const i64 id = ids[i];
    if (id < 0 || id >= classes) {
      report(words, code, id, 0);
      continue;
    }
    const double p = probability_of(id, sums, classes, width);
    y[i] = static_cast<float>(unique ? -expm1(times * log1p(-p)) : p * times);
  }
}
