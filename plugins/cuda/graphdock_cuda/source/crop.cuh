// Boxes cut out of images and resized. TYPE: of the images; NEAR: whether a pixel is its nearest one. Positions are float32 without
// fused operations: whether one lies inside is part of what the ops mean.

typedef TYPE T;
typedef typename choose<same<T, double>::value, double, float>::type C;

struct Crops {
  i64 boxes, batch, channels;
  int size[2], wanted[2];
};
GD_DEVICE float where_of(const float* box, int axis, int i, const Crops& s) {
  const float start = box[axis], end = box[axis + 2], most = static_cast<float>(s.size[axis] - 1);
  if (s.wanted[axis] == 1) return __fmul_rn(__fmul_rn(0.5f, __fadd_rn(start, end)), most);
  const float step = __fdiv_rn(__fmul_rn(__fsub_rn(end, start), most), static_cast<float>(s.wanted[axis] - 1));
  return __fadd_rn(__fmul_rn(start, most), __fmul_rn(static_cast<float>(i), step));
}
GD_DEVICE bool inside(float at, int size) { return at >= 0.0f && at <= static_cast<float>(size - 1); }
// The image of a box; -1 and an error word for one outside of the batch.
GD_DEVICE i64 image_of(const i32* indices, i64 box, const Crops& s, i64* words, i64 code) {
  const i64 index = indices[box];
  if (index >= 0 && index < s.batch) return index;
  words[0] = index;
  words[1] = box;
  __threadfence_system();
  words[2] = code;
  return -1;
}
// The weight that a position has for a pixel.
GD_DEVICE float share(float at, int pixel) {
#if NEAR
  return static_cast<int>(floorf(at + 0.5f)) == pixel ? 1.0f : 0.0f;
#else
  const float distance = fabsf(at - static_cast<float>(pixel));
  return distance < 1.0f ? 1.0f - distance : 0.0f;
#endif
}
