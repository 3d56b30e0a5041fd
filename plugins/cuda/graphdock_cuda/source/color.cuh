// Colours of pixels, three channels last; FUNCTION says what becomes of a pixel. TYPE: of the channels.

typedef TYPE T;
typedef compute_t<T> C;

struct Pixel {
  C a, b, c;
};
GD_DEVICE Pixel hsv_of(Pixel p) {
  const C high = maximum(maximum(p.a, p.b), p.c), low = minimum(minimum(p.a, p.b), p.c), range = high - low;
  if (range == C(0)) return {C(0), C(0), high};
  const C red = (high - p.a) / range, green = (high - p.b) / range, blue = (high - p.c) / range;
  C hue = p.a == high ? blue - green : p.b == high ? C(2) + red - blue : C(4) + green - red;
  hue = hue / C(6);
  return {hue - floor(hue), high > C(0) ? range / high : C(0), high};
}
GD_DEVICE C clipped(C x) { return x < C(0) ? C(0) : x > C(1) ? C(1) : x; }
GD_DEVICE Pixel rgb_of(Pixel p) {
  const C six = C(6) * p.a;
  const C red = clipped(fabs(six - C(3)) - C(1)), green = clipped(C(2) - fabs(six - C(2))), blue = clipped(C(2) - fabs(six - C(4)));
  return {p.c * (C(1) - p.b * (C(1) - red)), p.c * (C(1) - p.b * (C(1) - green)), p.c * (C(1) - p.b * (C(1) - blue))};
}
GD_DEVICE Pixel rgb_to_hsv(Pixel p, C) { return hsv_of(p); }
GD_DEVICE Pixel hsv_to_rgb(Pixel p, C) { return rgb_of(p); }
GD_DEVICE Pixel adjust_hue(Pixel p, C delta) {
  Pixel h = hsv_of(p);
  h.a += delta;
  h.a -= floor(h.a);
  return rgb_of(h);
}
GD_DEVICE Pixel adjust_saturation(Pixel p, C scale) {
  Pixel h = hsv_of(p);
  h.b = clipped(h.b * scale);
  return rgb_of(h);
}

GD_KERNEL(color)(const T* x, const float* by, T* y, i64 pixels) {
  GD_GRID_LOOP(i64, i, pixels) {
    const Pixel p = FUNCTION({load(x + 3 * i), load(x + 3 * i + 1), load(x + 3 * i + 2)}, by ? static_cast<C>(*by) : C(0));
    store(y + 3 * i, p.a);
    store(y + 3 * i + 1, p.b);
    store(y + 3 * i + 2, p.c);
  }
}
