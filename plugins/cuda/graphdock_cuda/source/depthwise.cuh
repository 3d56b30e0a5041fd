// Depthwise convolutions: each channel on its own, `outputs` results per channel. After sliding.cuh and columns.cuh.

typedef TYPE T;
typedef compute_t<T> R;

// i counts the elements of [batch, *dims, channels] as they lie, channels last or first.
GD_DEVICE Place split(i64 i, const int* dims, i64 channels, i64 channel_step, i64* channel) {
  if (channel_step == 1) {
    *channel = i % channels;
    return place(i / channels, dims);
  }
  const i64 lines = places(dims), plane = i / lines;
  *channel = plane % channels;
  Place p = place(i - plane * lines, dims);
  p.batch = plane / channels;
  return p;
}

GD_KERNEL(depthwise_forward)(const T* x, const T* w, T* y, Slide s, i64 n) {
  const i64 all = static_cast<i64>(s.channels) * s.outputs;
  GD_GRID_LOOP(i64, i, n) {
    i64 both;
    const Place p = split(i, s.out, all, s.y_channel, &both);
    const i64 c = both / s.outputs, base = p.batch * s.x_batch + c * s.x_channel;
    R sum = R(0);
    i64 k = 0;
    for (int a = 0; a < s.window[0]; ++a)
      for (int b = 0; b < s.window[1]; ++b)
        for (int d = 0; d < s.window[2]; ++d, ++k) {
          const int i0 = p.at[0] * s.stride[0] - s.before[0] + a * s.dilation[0];
          const int i1 = p.at[1] * s.stride[1] - s.before[1] + b * s.dilation[1];
          const int i2 = p.at[2] * s.stride[2] - s.before[2] + d * s.dilation[2];
          if (i0 < 0 || i1 < 0 || i2 < 0 || i0 >= s.size[0] || i1 >= s.size[1] || i2 >= s.size[2]) continue;
          sum = fma(load(x + base + i0 * s.x_step[0] + i1 * s.x_step[1] + i2 * s.x_step[2]), load(w + k * all + both), sum);
        }
    store(y + i, sum);
  }
}

GD_KERNEL(depthwise_input)(const T* w, const T* dy, T* dx, Slide s, i64 n) {
  const i64 all = static_cast<i64>(s.channels) * s.outputs;
  GD_GRID_LOOP(i64, i, n) {
    i64 c;
    const Place p = split(i, s.size, s.channels, s.x_channel, &c);
    R sum = R(0);
    const int taps = s.window[0] * s.window[1] * s.window[2];
    for (int k = 0; k < taps; ++k) {
      const Tap t = tap(s, k, 1);
      i64 line = 0;
      bool meets = true;
      for (int d = 0; d < 3; ++d) {
        const int reach = p.at[d] + s.before[d] - t.by[d], o = reach / s.stride[d];
        meets = meets && reach >= 0 && o * s.stride[d] == reach && o < s.out[d];
        line = line * s.out[d] + o;
      }
      if (!meets) continue;
      const T* from = dy + p.batch * s.y_batch + line * s.y_line;
      for (i64 both = c * s.outputs; both < (c + 1) * s.outputs; ++both)
        sum = fma(load(from + both * s.y_channel), load(w + k * all + both), sum);
    }
    store(dx + i, sum);
  }
}

struct Total {
  R sum;
  GD_DEVICE void add(R value) { sum += value; }
  GD_DEVICE void join(const Total& other) { sum += other.sum; }
};
// An element of the window at one position of it, times the gradient there.
struct products_at {
  const T* x;
  const T* dy;
  const Slide& s;
  Tap t;
  GD_DEVICE R operator()(i64 position, i64 both) const {
    const Place p = place(position, s.out);
    i64 from = p.batch * s.x_batch + both / s.outputs * s.x_channel, line = 0;
    for (int d = 0; d < 3; ++d) {
      const int i = p.at[d] * s.stride[d] - s.before[d] + t.by[d];
      if (i < 0 || i >= s.size[d]) return R(0);
      from += i * s.x_step[d];
      line = line * s.out[d] + p.at[d];
    }
    return load(x + from) * load(dy + p.batch * s.y_batch + line * s.y_line + both * s.y_channel);
  }
};
// columns_first counts within [1, channels, positions].
struct positions_of {
  products_at all;
  i64 rows;
  GD_DEVICE R operator()(i64 at, i64 both) const { return all(at - both * rows, both); }
};
// Parts lie as [element of the window, part, channel]; blockIdx.z counts the elements of the window.
GD_KERNEL(depthwise_filter)(const T* x, const T* dy, Total* parts, Slide s) {
  const i64 all = static_cast<i64>(s.channels) * s.outputs, rows = s.batch * places(s.out);
  const int taps = s.window[0] * s.window[1] * s.window[2];
  for (int k = blockIdx.z; k < taps; k += gridDim.z) {
    Total* mine = parts + static_cast<i64>(k) * gridDim.y * all;
    __syncthreads();  // a round's shared memory was read
    if (s.y_channel == 1) columns_last(mine, rows, all, products_at{x, dy, s, tap(s, k, 1)});
    else columns_first(mine, 1, all, rows, positions_of{{x, dy, s, tap(s, k, 1)}, rows});
  }
}
GD_KERNEL(depthwise_filter_join)(const Total* parts, T* dw, int count, i64 all, i64 n) {
  GD_GRID_LOOP(i64, i, n) store(dw + i, joined(parts + i / all * count * all, count, all, i % all).sum);
}
