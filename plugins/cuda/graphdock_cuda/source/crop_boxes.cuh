// After block.cuh and crop.cuh: a block sums the derivatives by the four sides of a box.

struct Sides {
  C at[4];
};
struct add_sides {
  GD_DEVICE Sides operator()(Sides a, const Sides& b) const {
    for (int i = 0; i < 4; ++i) a.at[i] += b.at[i];
    return a;
  }
};
GD_KERNEL(crop_boxes)(const float* g, const T* x, const float* boxes, const i32* indices, float* out, Crops s, i64* words, i64 code) {
  const i64 each = static_cast<i64>(s.wanted[0]) * s.wanted[1] * s.channels;
  for (i64 box = blockIdx.x; box < s.boxes; box += gridDim.x) {
    const i64 index = image_of(indices, box, s, words, code);
    if (index < 0) continue;
    const T* image = x + index * s.size[0] * s.size[1] * s.channels;
    Sides all{};
    for (i64 o = threadIdx.x; o < each; o += blockDim.x) {
      const i64 channel = o % s.channels, pixel = o / s.channels;
      const int i = static_cast<int>(pixel / s.wanted[1]), j = static_cast<int>(pixel % s.wanted[1]);
      const float row = where_of(boxes + 4 * box, 0, i, s), column = where_of(boxes + 4 * box, 1, j, s);
      if (!inside(row, s.size[0]) || !inside(column, s.size[1])) continue;
      const i64 top = static_cast<i64>(floorf(row)), low = static_cast<i64>(ceilf(row));
      const i64 left = static_cast<i64>(floorf(column)), right = static_cast<i64>(ceilf(column));
      const C down = static_cast<C>(row - floorf(row)), along = static_cast<C>(column - floorf(column));
      const auto at = [&](i64 r, i64 c) { return static_cast<C>(load(image + (r * s.size[1] + c) * s.channels + channel)); };
      const C by_y = (C(1) - along) * (at(low, left) - at(top, left)) + along * (at(low, right) - at(top, right));
      const C by_x = (C(1) - down) * (at(top, right) - at(top, left)) + down * (at(low, right) - at(low, left));
      const C grad = static_cast<C>(g[box * each + o]);
      const C dy = grad * by_y * static_cast<C>(s.size[0] - 1), dx = grad * by_x * static_cast<C>(s.size[1] - 1);
      const C v = s.wanted[0] > 1 ? static_cast<C>(i) / static_cast<C>(s.wanted[0] - 1) : C(0.5);
      const C h = s.wanted[1] > 1 ? static_cast<C>(j) / static_cast<C>(s.wanted[1] - 1) : C(0.5);
      all = add_sides()(all, Sides{{dy * (C(1) - v), dx * (C(1) - h), dy * v, dx * h}});
    }
    all = block_reduce(all, add_sides());
    if (threadIdx.x < 4) out[4 * box + threadIdx.x] = static_cast<float>(all.at[threadIdx.x]);
  }
}
