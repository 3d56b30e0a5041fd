// After crop.cuh.

GD_KERNEL(crop)(const T* x, const float* boxes, const i32* indices, float* y, i64 n, float beyond, Crops s, i64* words, i64 code) {
  GD_GRID_LOOP(i64, o, n) {
    const i64 channel = o % s.channels, pixel = o / s.channels, line = pixel / s.wanted[1], box = line / s.wanted[0];
    const i64 index = image_of(indices, box, s, words, code);
    if (index < 0) continue;
    const float row = where_of(boxes + 4 * box, 0, static_cast<int>(line % s.wanted[0]), s);
    const float column = where_of(boxes + 4 * box, 1, static_cast<int>(pixel % s.wanted[1]), s);
    if (!inside(row, s.size[0]) || !inside(column, s.size[1])) {
      y[o] = beyond;
      continue;
    }
    const T* image = x + index * s.size[0] * s.size[1] * s.channels + channel;
#if NEAR
    const i64 i = static_cast<i64>(floorf(row + 0.5f)), j = static_cast<i64>(floorf(column + 0.5f));
    y[o] = static_cast<float>(load(image + (i * s.size[1] + j) * s.channels));
#else
    C sum = C(0);
    const int top = static_cast<int>(floorf(row)), left = static_cast<int>(floorf(column));
    for (int i = top; i <= static_cast<int>(ceilf(row)); ++i)
      for (int j = left; j <= static_cast<int>(ceilf(column)); ++j)
        sum += static_cast<C>(share(row, i)) * static_cast<C>(share(column, j)) *
               static_cast<C>(load(image + (static_cast<i64>(i) * s.size[1] + j) * s.channels));
    y[o] = static_cast<float>(sum);
#endif
  }
}
