// Differences of [images, pixels, channels] to the mean of each channel, multiplied. After columns.cuh.

typedef TYPE T;
typedef compute_t<T> C;

struct Total {
  C sum;
  GD_DEVICE void add(C value) { sum += value; }
  GD_DEVICE void join(const Total& other) { sum += other.sum; }
};
struct pixel_at {
  const T* x;
  i64 channels;
  GD_DEVICE C operator()(i64 row, i64 channel) const { return load(x + row * channels + channel); }
};
// blockIdx.z counts images; parts lie as [image, part, channel].
GD_KERNEL(contrast_sums)(const T* x, Total* parts, i64 images, i64 pixels, i64 channels) {
  for (i64 image = blockIdx.z; image < images; image += gridDim.z) {
    __syncthreads();  // a round's shared memory was read
    columns_last(parts + image * gridDim.y * channels, pixels, channels, pixel_at{x + image * pixels * channels, channels});
  }
}
GD_KERNEL(contrast_means)(const Total* parts, C* means, i64 n, int count, i64 pixels, i64 channels) {
  GD_GRID_LOOP(i64, i, n)
    means[i] = joined(parts + i / channels * count * channels, count, channels, i % channels).sum / static_cast<C>(pixels);
}
GD_KERNEL(contrast)(const T* x, const C* means, const float* factor, T* y, i64 n, i64 pixels, i64 channels) {
  GD_GRID_LOOP(i64, i, n) {
    const C mean = means[i / (pixels * channels) * channels + i % channels];
    store(y + i, (load(x + i) - mean) * static_cast<C>(*factor) + mean);
  }
}
