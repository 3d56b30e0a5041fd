// Of each pixel the sum over the windows that it is in, in the order of the places in a window. ELEMENT: type of elements.

typedef ELEMENT T;

GD_KERNEL(patches_grad)(const T* g, T* y, i64 n, i64 channels, Windows w) {
  GD_GRID_LOOP(i64, i, n) {
    const i64 pixel = i / channels, channel = i - pixel * channels, line = pixel / w.size[1], image = line / w.size[0];
    const i64 row = line - image * w.size[0], column = pixel - line * w.size[1];
    compute_t<T> total = 0;
    for (i64 r = 0; r < w.taps[0]; ++r) {
      const i64 down = row + w.before[0] - r * w.rate[0];
      if (down < 0 || down % w.stride[0] != 0 || down / w.stride[0] >= w.count[0]) continue;
      for (i64 c = 0; c < w.taps[1]; ++c) {
        const i64 along = column + w.before[1] - c * w.rate[1];
        if (along < 0 || along % w.stride[1] != 0 || along / w.stride[1] >= w.count[1]) continue;
        const i64 window = (image * w.count[0] + down / w.stride[0]) * w.count[1] + along / w.stride[1];
        total += load(g + ((window * w.taps[0] + r) * w.taps[1] + c) * channels + channel);
      }
    }
    store(y + i, total);
  }
}
