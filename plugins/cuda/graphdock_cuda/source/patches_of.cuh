// Windows of images, each laid out in the channels. E: an element, see word.cuh. After patches.cuh.

GD_KERNEL(patches)(const E* x, E* y, i64 n, i64 channels, Windows w) {
  GD_GRID_LOOP(i64, i, n) {
    i64 left = i / channels;
    const i64 channel = i - left * channels;
    i64 place[2];
    for (int axis = 1; axis >= 0; --axis) {
      place[axis] = left % w.taps[axis] * w.rate[axis] - w.before[axis];
      left /= w.taps[axis];
    }
    for (int axis = 1; axis >= 0; --axis) {
      place[axis] += left % w.count[axis] * w.stride[axis];
      left /= w.count[axis];
    }
    const bool inside = place[0] >= 0 && place[0] < w.size[0] && place[1] >= 0 && place[1] < w.size[1];
    y[i] = inside ? x[((left * w.size[0] + place[0]) * w.size[1] + place[1]) * channels + channel] : E{};
  }
}
