// Windows of images at places of their own, with noise around. After block.cuh and philox.cuh.

// What noise is made of: an image's least element and how far the largest is above it, or its mean and standard deviation. A block
// has an image.
GD_KERNEL(image_spread)(const float* images, float* spread, i64 size, int gaussian) {
  const float* const image = images + static_cast<i64>(blockIdx.x) * size;
  float base, width;
  if (gaussian) {
    double total = 0, squares = 0;
    for (i64 i = threadIdx.x; i < size; i += blockDim.x) total += image[i];
    const double mean = block_reduce(total, sum_op()) / static_cast<double>(size);
    for (i64 i = threadIdx.x; i < size; i += blockDim.x) squares += (image[i] - mean) * (image[i] - mean);
    base = static_cast<float>(mean);
    width = static_cast<float>(sqrt(block_reduce(squares, sum_op()) / static_cast<double>(size)));
  } else {
    float low = limits<float>::top(), high = limits<float>::bottom();
    for (i64 i = threadIdx.x; i < size; i += blockDim.x) {
      low = minimum(low, image[i]);
      high = maximum(high, image[i]);
    }
    base = block_reduce(low, min_op());
    width = block_reduce(high, max_op()) - base;
  }
  if (threadIdx.x == 0) {
    spread[2 * blockIdx.x] = base;
    spread[2 * blockIdx.x + 1] = width;
  }
}

// Where a window begins along one axis: no step is fused with another, so that it is rounded as NumPy rounds.
GD_DEVICE i64 corner_of(float offset, i64 have, i64 want, int centered, int normalized) {
  const float extent = static_cast<float>(have);
  float at = normalized ? __fmul_rn(offset, extent) : offset;
  if (centered) at = __fadd_rn(__fmul_rn(at, 0.5f), __fmul_rn(extent, 0.5f));
  at = __fadd_rn(at, -0.5f * static_cast<float>(want));
  // far outside is far outside
  if (!(fabs(at) < 1e15f)) return 1000000000000000ll;
  return static_cast<i64>(at);
}

// Eight numbers of the output per thread and turn, as many as a block of the stream makes.
GD_KERNEL(glimpse)(GD_STREAM, const float* images, const float* offsets, const float* spread, float* y, i64 count, i64 height, i64 width, i64 channels,
                   i64 wanted_height, i64 wanted_width, int centered, int normalized, int noise, int gaussian) {
  GD_OPEN_STREAM(stream);
  GD_GRID_LOOP(i64, pack_at, (count + 7) / 8) {
    bool drawn = false;
    float numbers[8];
    for (int k = 0; k < 8 && pack_at * 8 + k < count; ++k) {
      const i64 flat = pack_at * 8 + k, channel = flat % channels, j = flat / channels % wanted_width;
      const i64 i = flat / channels / wanted_width % wanted_height, image = flat / channels / wanted_width / wanted_height;
      const i64 row = corner_of(offsets[2 * image], height, wanted_height, centered, normalized) + i;
      const i64 column = corner_of(offsets[2 * image + 1], width, wanted_width, centered, normalized) + j;
      if (row >= 0 && row < height && column >= 0 && column < width) {
        y[flat] = images[((image * height + row) * width + column) * channels + channel];
      } else if (!noise) {
        y[flat] = 0;
      } else {
        if (!drawn) {
          uniforms<float> values(stream.block(1 + pack_at));
#pragma unroll
          for (int n = 0; n < 8; n += 2) {
            if (gaussian) to_normal(values.at[n], values.at[n + 1]);
            numbers[n] = values.at[n], numbers[n + 1] = values.at[n + 1];
          }
          drawn = true;
        }
        y[flat] = numbers[k] * spread[2 * image + 1] + spread[2 * image];
      }
    }
  }
}
