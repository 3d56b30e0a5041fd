// Outlines of boxes on images: each pixel has the colour of the last box whose line it is on. TYPE: of the images.

typedef TYPE T;

__device__ const float DEFAULT_COLORS[10][4] = {{1, 1, 0, 1},       {0, 0, 1, 1},     {1, 0, 0, 1},   {0, 1, 0, 1},
                                                {0.5f, 0, 0.5f, 1}, {0.5f, 0.5f, 0, 1}, {0.5f, 0, 0, 1}, {0, 0, 0.5f, 1},
                                                {0, 1, 1, 1},       {1, 0, 1, 1}};

GD_KERNEL(draw_boxes)(const T* x, const float* boxes, const float* colors, T* y, i64 pixels, i64 height, i64 width, int channels,
                      i64 count, i64 color_count, i64 color_width) {
  GD_GRID_LOOP(i64, p, pixels) {
    const i64 image = p / (height * width), row = p / width % height, column = p % width;
    i64 found = -1;
    for (i64 box = count - 1; box >= 0 && found < 0; --box) {
      const float* b = boxes + 4 * (image * count + box);
      const i64 top = __float2int_rz(__fmul_rn(b[0], static_cast<float>(height - 1)));
      const i64 left = __float2int_rz(__fmul_rn(b[1], static_cast<float>(width - 1)));
      const i64 low = __float2int_rz(__fmul_rn(b[2], static_cast<float>(height - 1)));
      const i64 right = __float2int_rz(__fmul_rn(b[3], static_cast<float>(width - 1)));
      const bool within = top <= row && row <= low && left <= column && column <= right;
      if (within && (row == top || row == low || column == left || column == right)) found = box;
    }
    for (int c = 0; c < channels; ++c) {
      if (found < 0) y[p * channels + c] = x[p * channels + c];
      else if (color_count) store(y + p * channels + c, colors[found % color_count * color_width + c]);
      else store(y + p * channels + c, channels == 1 ? 1.0f : DEFAULT_COLORS[found % 10][c]);
    }
  }
}
