// Windows that slide over up to three spatial dims of an input; what is missing of three has size 1. k counts the elements of a window
// and, fastest, channels.

namespace gd {

// Strides are in elements; x is the input, y the output. `lines`: of the spatial dims taken as one.
struct Slide {
  i64 batch, x_batch, x_channel, x_line, y_batch, y_channel, y_line;
  i64 x_step[3];
  int channels, outputs;
  int size[3], window[3], stride[3], dilation[3], before[3], out[3];
};

GD_DEVICE i64 places(const int* dims) { return static_cast<i64>(dims[0]) * dims[1] * dims[2]; }

struct Place {
  i64 batch;
  int at[3];
};
// A position among all of [batch, *dims].
GD_DEVICE Place place(i64 flat, const int* dims) {
  Place p;
  const i64 a = flat / dims[2], b = a / dims[1];
  p.at[2] = static_cast<int>(flat - a * dims[2]);
  p.at[1] = static_cast<int>(a - b * dims[1]);
  p.batch = b / dims[0];
  p.at[0] = static_cast<int>(b - p.batch * dims[0]);
  return p;
}
// An element of the window and a channel, as the distance from the window's begin.
struct Tap {
  int by[3], channel;
  u32 index;
};
GD_DEVICE Tap tap(const Slide& s, u32 k, u32 channels) {
  Tap t;
  t.index = k / channels;
  t.channel = static_cast<int>(k - t.index * channels);
  const u32 a = t.index / s.window[2], b = a / s.window[1];
  t.by[2] = static_cast<int>(t.index - a * s.window[2]) * s.dilation[2];
  t.by[1] = static_cast<int>(a - b * s.window[1]) * s.dilation[1];
  t.by[0] = static_cast<int>(b) * s.dilation[0];
  return t;
}

}  // namespace gd
