// Sums of doubles in order, which a block makes together: the values in parallel, the sums one after the other. After block.cuh.

namespace gd {

// sums[i] = value(0) + ... + value(i). Every thread of a block of 256 calls it.
template <class F> GD_DEVICE double running_sums(double* sums, i64 n, F value) {
  __shared__ double part[256];
  __shared__ double total;
  if (threadIdx.x == 0) total = 0;
  for (i64 start = 0; start < n; start += 256) {
    const i64 i = start + threadIdx.x;
    if (i < n) part[threadIdx.x] = value(i);
    __syncthreads();
    if (threadIdx.x == 0) {
      const int count = n - start < 256 ? static_cast<int>(n - start) : 256;
      double sum = total;
      for (int k = 0; k < count; ++k) part[k] = sum += part[k];
      total = sum;
    }
    __syncthreads();
    if (i < n) sums[i] = part[threadIdx.x];
    __syncthreads();
  }
  const double all = total;
  __syncthreads();
  return all;
}

// The first place whose sum is above a value.
GD_DEVICE i64 first_above(const double* sums, i64 n, double value) {
  i64 low = 0, high = n;
  while (low < high) {
    const i64 middle = (low + high) / 2;
    if (sums[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

}  // namespace gd
