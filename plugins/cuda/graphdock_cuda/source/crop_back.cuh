// After crop.cuh: each pixel of the images gathers from all boxes of its image, in order.

GD_KERNEL(crop_back)(const float* g, const float* boxes, const i32* indices, T* dx, i64 n, Crops s, i64* words, i64 code) {
  GD_GRID_LOOP(i64, o, n) {
    const i64 channel = o % s.channels, pixel = o / s.channels, line = pixel / s.size[1], image = line / s.size[0];
    const int row = static_cast<int>(line % s.size[0]), column = static_cast<int>(pixel % s.size[1]);
    C sum = C(0);
    for (i64 box = 0; box < s.boxes; ++box) {
      if (image_of(indices, box, s, words, code) != image) continue;
      for (int i = 0; i < s.wanted[0]; ++i) {
        const float y = where_of(boxes + 4 * box, 0, i, s), above = inside(y, s.size[0]) ? share(y, row) : 0.0f;
        if (above == 0.0f) continue;
        for (int j = 0; j < s.wanted[1]; ++j) {
          const float x = where_of(boxes + 4 * box, 1, j, s), beside = inside(x, s.size[1]) ? share(x, column) : 0.0f;
          if (beside == 0.0f) continue;
          const i64 from = ((box * s.wanted[0] + i) * s.wanted[1] + j) * s.channels + channel;
          sum += static_cast<C>(above) * static_cast<C>(beside) * static_cast<C>(g[from]);
        }
      }
    }
    store(dx + o, sum);
  }
}
