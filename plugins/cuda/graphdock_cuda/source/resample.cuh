// Where along one axis a resized image takes its pixels from. Positions are part of what the ops mean: they are computed in float32
// without fused operations, so that a floor does not depend on the backend.

namespace gd {

enum Method { NEAREST = 0, BILINEAR = 1, BICUBIC = 2, AREA = 3 };

struct Axis {
  int size, wanted;
  float scale;
  int align, half;
};

GD_DEVICE float position(const Axis& a, int i) {
  const float at = static_cast<float>(i);
  return a.half ? __fsub_rn(__fmul_rn(__fadd_rn(at, 0.5f), a.scale), 0.5f) : __fmul_rn(at, a.scale);
}
GD_DEVICE int within(const Axis& a, int i) { return i < 0 ? 0 : i >= a.size ? a.size - 1 : i; }

// The weight of a pixel nearer than 1, and of one farther, by the distance to the nearer in steps of 1/1024.
GD_DEVICE double cubic_near(double sharpness, int step) {
  const double x = step / 1024.0;
  return ((sharpness + 2) * x - (sharpness + 3)) * x * x + 1;
}
GD_DEVICE double cubic_far(double sharpness, int step) {
  const double y = step / 1024.0 + 1;
  return ((sharpness * y - 5 * sharpness) * y + 8 * sharpness) * y - 4 * sharpness;
}

// visit(pixel, weight) for each pixel that makes pixel i.
template <int METHOD, class Visit> GD_DEVICE void each_tap(const Axis& a, int i, Visit visit) {
  if constexpr (METHOD == NEAREST) {
    const float at = static_cast<float>(i), where = __fmul_rn(a.half ? __fadd_rn(at, 0.5f) : at, a.scale), low = floorf(where);
    visit(within(a, static_cast<int>(low) + (a.align && where - low >= 0.5f ? 1 : 0)), 1.0f);
  } else if constexpr (METHOD == BILINEAR) {
    const float where = position(a, i), low = floorf(where), part = where - low;
    visit(within(a, static_cast<int>(low)), 1.0f - part);
    visit(within(a, static_cast<int>(ceilf(where))), part);
  } else if constexpr (METHOD == BICUBIC) {
    const float where = position(a, i), low = floorf(where);
    const int step = static_cast<int>(rintf((where - low) * 1024.0f)), first = static_cast<int>(low) - 1;
    const double sharpness = a.half ? -0.5 : -0.75;
    double weights[4] = {cubic_far(sharpness, step), cubic_near(sharpness, step), cubic_near(sharpness, 1024 - step),
                         cubic_far(sharpness, 1024 - step)};
    if (a.half) {
      double total = 0;
      for (int k = 0; k < 4; ++k) total += weights[k] = first + k == within(a, first + k) ? weights[k] : 0.0;
      for (int k = 0; k < 4; ++k) weights[k] /= total;
    }
    for (int k = 0; k < 4; ++k) visit(within(a, first + k), static_cast<float>(weights[k]));
  } else if (a.size == 1) {
    visit(0, 1.0f);  // also where corners are aligned, between which is nothing then
  } else {
    const float start = __fmul_rn(static_cast<float>(i), a.scale), end = __fmul_rn(static_cast<float>(i + 1), a.scale);
    for (int j = static_cast<int>(floorf(start)); j < static_cast<int>(ceilf(end)); ++j) {
      const float low = static_cast<float>(j), high = static_cast<float>(j + 1);
      const float part = start >= low && end <= high ? a.scale : (high < end ? high : end) - (low > start ? low : start);
      visit(within(a, j), part / a.scale);
    }
  }
}
// visit(i, weight) for each pixel i of the result that pixel j has a part in.
template <int METHOD, class Visit> GD_DEVICE void each_user(const Axis& a, int j, Visit visit) {
  const float low = (static_cast<float>(j) - 3.0f) / a.scale - 2.0f, high = (static_cast<float>(j) + 3.0f) / a.scale + 2.0f;
  const int begin = low > 0.0f ? static_cast<int>(low) : 0;
  const int end = high < static_cast<float>(a.wanted) ? static_cast<int>(high) + 1 : a.wanted;
  for (int i = begin; i < end && i < a.wanted; ++i) {
    float weight = 0.0f;
    each_tap<METHOD>(a, i, [&](int pixel, float part) { weight += pixel == j ? part : 0.0f; });
    if (weight != 0.0f) visit(i, weight);
  }
}

}  // namespace gd
