// The gradient of batch normalisation. As batch_norm.cuh.

typedef TYPE T;
typedef STATISTICS U;
typedef WIDE W;

// A gradient, and the gradient times the element less its mean.
struct grads_at {
  const T* dy;
  const T* x;
  const U* mean;
  i64 channels;
  GD_DEVICE Two<W> operator()(i64 row, i64 channel) const { return of(row * channels + channel, channel); }
  GD_DEVICE Two<W> of(i64 at, i64 channel) const {
    const W grad = static_cast<W>(load(dy + at));
    return {grad, grad * (static_cast<W>(load(x + at)) - static_cast<W>(mean[channel]))};
  }
};
struct grads_of {
  grads_at all;
  GD_DEVICE Two<W> operator()(i64 at, i64 channel) const { return all.of(at, channel); }
};

GD_KERNEL(batch_norm_grad_sums_last)(const T* dy, const T* x, const U* mean, TwoSums<W>* parts, i64 rows, i64 channels) {
  columns_last(parts, rows, channels, grads_at{dy, x, mean, channels});
}
GD_KERNEL(batch_norm_grad_sums_first)(const T* dy, const T* x, const U* mean, TwoSums<W>* parts, i64 batch, i64 channels, i64 inner) {
  columns_first(parts, batch, channels, inner, grads_of{{dy, x, mean, channels}});
}
// Per channel: what is taken from each gradient, what from it per distance to the mean, and the factor of what is left.
GD_KERNEL(batch_norm_grad_vectors)(const TwoSums<W>* parts, int count, const U* scale, const U* variance, U* to_scale,
                                   U* to_offset, W* factors, i64 channels, i64 elements, double epsilon, int training) {
  GD_GRID_LOOP(i64, c, channels) {
    const TwoSums<W> all = joined(parts, count, channels, c);
    const W inverse = W(1) / sqrt(static_cast<W>(variance[c]) + static_cast<W>(epsilon)), n = static_cast<W>(elements);
    store(to_scale + c, elements ? all.second * inverse : W(0));  // the variance of nothing is NaN
    store(to_offset + c, all.first);
    factors[c] = training ? all.first / n : W(0);
    factors[channels + c] = training ? all.second * inverse * inverse / n : W(0);
    factors[2 * channels + c] = static_cast<W>(scale[c]) * inverse;
  }
}
GD_KERNEL(batch_norm_grad_apply)(const T* dy, const T* x, const U* mean, const W* factors, T* dx, i64 n, i64 channels, i64 inner,
                                 int training) {
  GD_GRID_LOOP(i64, i, n) {
    const i64 c = (inner == 1 ? i : i / inner) % channels;
    W grad = static_cast<W>(load(dy + i));
    if (training) {
      const W centred = static_cast<W>(load(x + i)) - static_cast<W>(mean[c]);
      grad = grad - centred * factors[channels + c] - factors[c];
    }
    store(dx + i, grad * factors[2 * channels + c]);
  }
}
