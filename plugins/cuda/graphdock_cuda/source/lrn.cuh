// Local response normalisation over the channels of [pixels, channels].

typedef TYPE T;
typedef compute_t<T> C;

struct Response {
  i64 channels, radius;
  double bias, alpha, beta;
};
// bias + alpha * the sum of squares of the channels near one.
GD_DEVICE C divisor_at(const T* x, i64 i, const Response& r) {
  const i64 c = i % r.channels, low = c > r.radius ? c - r.radius : 0;
  const i64 high = c + r.radius < r.channels ? c + r.radius : r.channels - 1;
  C sum = C(0);
  for (i64 j = i - c + low; j <= i - c + high; ++j) sum += load(x + j) * load(x + j);
  return static_cast<C>(r.bias) + static_cast<C>(r.alpha) * sum;
}
GD_DEVICE C to_minus_beta(C s, double beta) {
  if (beta == 0.5) return C(1) / sqrt(s);
  if (beta == 1.0) return C(1) / s;
  if (beta == 0.75) {
    const C root = sqrt(s);
    return C(1) / (root * sqrt(root));
  }
  return pow(s, static_cast<C>(-beta));
}

GD_KERNEL(lrn_forward)(const T* x, T* y, i64 n, Response r) {
  GD_GRID_LOOP(i64, i, n) store(y + i, load(x + i) * to_minus_beta(divisor_at(x, i, r), r.beta));
}
// g y / s, which a channel's neighbours need, and g s^-beta.
GD_KERNEL(lrn_shares)(const T* g, const T* x, const T* y, C* shares, C* own, i64 n, Response r) {
  GD_GRID_LOOP(i64, i, n) {
    const C s = divisor_at(x, i, r), grad = load(g + i);
    shares[i] = grad * load(y + i) / s;
    own[i] = grad * to_minus_beta(s, r.beta);
  }
}
GD_KERNEL(lrn_gather)(const T* x, const C* shares, const C* own, T* dx, i64 n, Response r) {
  GD_GRID_LOOP(i64, i, n) {
    const i64 c = i % r.channels, low = c > r.radius ? c - r.radius : 0;
    const i64 high = c + r.radius < r.channels ? c + r.radius : r.channels - 1;
    C sum = C(0);
    for (i64 j = i - c + low; j <= i - c + high; ++j) sum += shares[j];
    store(dx + i, own[i] - static_cast<C>(2.0 * r.alpha * r.beta) * load(x + i) * sum);
  }
}
