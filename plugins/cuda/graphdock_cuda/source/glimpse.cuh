// Windows of images, with noise where they reach out. NOISE: 0 evenly distributed, 1 normal, 2 zeros. After block.cuh and philox.cuh.

// Of an image per block: where its noise begins and how wide it is; or its mean and standard deviation.
GD_KERNEL(measure)(const float* images, float* facts, i64 n) {
  const float* image = images + blockIdx.x * n;
  if (NOISE == 0) {
    float low = limits<float>::infinity(), high = -low;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) low = minimum(low, image[i]), high = maximum(high, image[i]);
    low = block_reduce(low, min_op());
    high = block_reduce(high, max_op());
    if (threadIdx.x == 0) facts[2 * blockIdx.x] = low, facts[2 * blockIdx.x + 1] = high - low;
    return;
  }
  double total = 0, squares = 0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) total += image[i];
  const double mean = block_reduce(total, sum_op()) / static_cast<double>(n);
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) squares += (image[i] - mean) * (image[i] - mean);
  squares = block_reduce(squares, sum_op());
  if (threadIdx.x != 0) return;
  facts[2 * blockIdx.x] = static_cast<float>(mean);
  facts[2 * blockIdx.x + 1] = static_cast<float>(sqrt(squares / static_cast<double>(n)));
}

// Where a window begins along an axis.
GD_DEVICE i64 corner(float offset, i64 extent, i64 wanted, int normalized, int centered) {
  const float size = static_cast<float>(extent);
  float at = normalized ? __fmul_rn(offset, size) : offset;
  if (centered) at = __fadd_rn(at / 2.0f, size / 2.0f);
  return static_cast<i64>(trunc(__fadd_rn(at, -(static_cast<float>(wanted) / 2.0f))));
}

// Number i of the stream's noise.
GD_DEVICE float noise_of(const RandomStream& stream, i64 i) {
  uniforms<float> values(stream.block(1 + i / 8));
  if (NOISE == 1) {
    for (int k = 0; k < 8; k += 2) to_normal(values.at[k], values.at[k + 1]);
  }
  return values.at[i % 8];
}

GD_KERNEL(glimpse)
(GD_STREAM, const float* images, const float* offsets, const float* facts, float* y, i64 n, i64 rows, i64 columns, i64 channels,
 i64 height, i64 width, int normalized, int centered) {
  GD_OPEN_STREAM(stream);
  GD_GRID_LOOP(i64, i, n) {
    const i64 pixel = i / channels, line = pixel / width, image = line / height;
    const i64 row = line - image * height + corner(offsets[2 * image], rows, height, normalized, centered);
    const i64 column = pixel - line * width + corner(offsets[2 * image + 1], columns, width, normalized, centered);
    if (row >= 0 && row < rows && column >= 0 && column < columns)
      y[i] = images[((image * rows + row) * columns + column) * channels + (i - pixel * channels)];
    else
      y[i] = NOISE == 2 ? 0.0f : __fadd_rn(__fmul_rn(noise_of(stream, i), facts[2 * image + 1]), facts[2 * image]);
  }
}
