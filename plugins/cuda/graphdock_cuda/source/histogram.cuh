// How many values fall into equal parts of a range. Counts of integers come out the same in any order.
//
// Macros: TX: type of elements; WIDE: what they are computed in; OUT: i32 or i64.

GD_KERNEL(histogram)(const TX* values, OUT* counts, i64 n, double low, double high, double span, int bins, int shared) {
  GD_DYNAMIC_SHARED(i32, own);
  const WIDE from = static_cast<WIDE>(low), to = static_cast<WIDE>(high), width = static_cast<WIDE>(span);
  if (shared) {
    for (int i = threadIdx.x; i < bins; i += blockDim.x) own[i] = 0;
    __syncthreads();
  }
  GD_GRID_LOOP(i64, i, n) {
    const WIDE value = static_cast<WIDE>(values[i]);
    if (value != value) continue;
    const WIDE inside = value < from ? from : value > to ? to : value;
    WIDE place = floor((inside - from) / width * static_cast<WIDE>(bins));
    place = place < WIDE(0) ? WIDE(0) : place > static_cast<WIDE>(bins - 1) ? static_cast<WIDE>(bins - 1) : place;
    const int bin = static_cast<int>(place) < bins ? static_cast<int>(place) : bins - 1;
    if (shared) atomicAdd(&own[bin], 1);
    else atomic_add(&counts[bin], OUT(1));
  }
  if (shared) {
    __syncthreads();
    for (int i = threadIdx.x; i < bins; i += blockDim.x)
      if (own[i]) atomic_add(&counts[i], static_cast<OUT>(own[i]));
  }
}
