// Morphological dilation of images: the largest sum of an element and the filter's. TYPE: of the elements. After sliding.cuh and
// block.cuh.

typedef TYPE T;
typedef compute_t<T> C;

// The largest sum of a window, as T rounds it, and the first element of the window that makes it; -1 where a sum is NaN, or none is.
struct Winner {
  C value;
  int index;
};
GD_DEVICE Winner winner(const T* x, const T* w, const Slide& s, i64 o, i64* channel, Place* at) {
  *channel = o % s.channels;
  *at = place(o / s.channels, s.out);
  Winner best{limits<T>::bottom(), -1};
  int k = 0;
  for (int a = 0; a < s.window[1]; ++a)
    for (int b = 0; b < s.window[2]; ++b, ++k) {
      const int i = at->at[1] * s.stride[1] - s.before[1] + a * s.dilation[1];
      const int j = at->at[2] * s.stride[2] - s.before[2] + b * s.dilation[2];
      if (i < 0 || j < 0 || i >= s.size[1] || j >= s.size[2]) continue;
      const i64 from = at->batch * s.x_batch + i * s.x_step[1] + j * s.x_step[2] + *channel;
      const C sum = rounded<T>(load(x + from) + load(w + static_cast<i64>(k) * s.channels + *channel));
      if (best.value != best.value) continue;
      if (best.index < 0 || sum > best.value || sum != sum) best = {sum, k};
    }
  if (best.value != best.value) best.index = -1;
  return best;
}

GD_KERNEL(dilation)(const T* x, const T* w, T* y, i64 n, Slide s) {
  GD_GRID_LOOP(i64, o, n) {
    i64 channel;
    Place at;
    store(y + o, winner(x, w, s, o, &channel, &at).value);
  }
}
GD_KERNEL(dilation_winners)(const T* x, const T* w, i32* winners, i64 n, Slide s) {
  GD_GRID_LOOP(i64, o, n) {
    i64 channel;
    Place at;
    winners[o] = winner(x, w, s, o, &channel, &at).index;
  }
}
GD_KERNEL(dilation_input)(const i32* winners, const T* dy, T* dx, i64 n, Slide s) {
  GD_GRID_LOOP(i64, i, n) {
    const i64 channel = i % s.channels;
    const Place p = place(i / s.channels, s.size);
    C sum = C(0);
    // positions in order: the last element of the window meets the first of them
    for (int k = s.window[1] * s.window[2] - 1; k >= 0; --k) {
      const int a = p.at[1] + s.before[1] - k / s.window[2] * s.dilation[1];
      const int b = p.at[2] + s.before[2] - k % s.window[2] * s.dilation[2];
      const int r = a / s.stride[1], q = b / s.stride[2];
      if (a < 0 || b < 0 || r * s.stride[1] != a || q * s.stride[2] != b || r >= s.out[1] || q >= s.out[2]) continue;
      const i64 o = ((p.batch * s.out[1] + r) * s.out[2] + q) * s.channels + channel;
      if (winners[o] == k) sum += load(dy + o);
    }
    store(dx + i, sum);
  }
}
// A block per element of the filter.
GD_KERNEL(dilation_filter)(const i32* winners, const T* dy, T* dw, i64 positions, Slide s) {
  const i64 channel = blockIdx.x % s.channels;
  const int k = blockIdx.x / s.channels;
  C sum = C(0);
  for (i64 position = threadIdx.x; position < positions; position += blockDim.x) {
    const i64 o = position * s.channels + channel;
    if (winners[o] == k) sum += load(dy + o);
  }
  sum = block_reduce(sum, sum_op());
  if (threadIdx.x == 0) store(dw + blockIdx.x, sum);
}
// The element of grad, of the filter's shape or of the input's, where each window has its maximum.
GD_KERNEL(dilation_pick)(const T* x, const T* w, const T* grad, T* out, i64 n, int of_filter, Slide s) {
  GD_GRID_LOOP(i64, o, n) {
    i64 channel;
    Place at;
    const int k = winner(x, w, s, o, &channel, &at).index;
    C value = C(0);
    if (k >= 0 && of_filter) {
      value = load(grad + static_cast<i64>(k) * s.channels + channel);
    } else if (k >= 0) {
      const int i = at.at[1] * s.stride[1] - s.before[1] + k / s.window[2] * s.dilation[1];
      const int j = at.at[2] * s.stride[2] - s.before[2] + k % s.window[2] * s.dilation[2];
      value = load(grad + at.batch * s.x_batch + i * s.x_step[1] + j * s.x_step[2] + channel);
    }
    store(out + o, value);
  }
}
