// Batch normalisation. TYPE: of the elements; STATISTICS: of the vectors; WIDE: what is computed in. After columns.cuh.

typedef TYPE T;
typedef STATISTICS U;
typedef WIDE W;

struct element_at {
  const T* x;
  i64 channels;
  GD_DEVICE W operator()(i64 row, i64 channel) const { return static_cast<W>(load(x + row * channels + channel)); }
};
struct element_of {
  const T* x;
  GD_DEVICE W operator()(i64 at, i64) const { return static_cast<W>(load(x + at)); }
};

GD_KERNEL(batch_norm_moments_last)(const T* x, Moments<W>* parts, i64 rows, i64 channels) {
  columns_last(parts, rows, channels, element_at{x, channels});
}
GD_KERNEL(batch_norm_moments_first)(const T* x, Moments<W>* parts, i64 batch, i64 channels, i64 inner) {
  columns_first(parts, batch, channels, inner, element_of{x});
}
// The outputs per channel, and mean and factor of each in W.
GD_KERNEL(batch_norm_statistics)(const Moments<W>* parts, int count, const U* scale, U* mean, U* unbiased, U* mean_again,
                                 U* variance, W* factors, i64 channels, double epsilon) {
  GD_GRID_LOOP(i64, c, channels) {
    const Moments<W> all = joined(parts, count, channels, c);
    const W n = static_cast<W>(all.count), biased = all.squares / n;
    const W average = all.count ? all.mean : biased;  // NaN of no elements
    store(mean + c, average);
    store(mean_again + c, average);
    store(unbiased + c, all.count > 1 ? all.squares / (n - W(1)) : biased);
    store(variance + c, biased);
    factors[c] = average;
    factors[channels + c] = static_cast<W>(scale[c]) / sqrt(biased + static_cast<W>(epsilon));
  }
}
GD_KERNEL(batch_norm_given)(const U* scale, const U* given_mean, const U* given_variance, U* mean, U* unbiased, U* mean_again,
                            U* variance, W* factors, i64 channels, double epsilon) {
  GD_GRID_LOOP(i64, c, channels) {
    mean[c] = mean_again[c] = given_mean[c];
    unbiased[c] = variance[c] = given_variance[c];
    factors[c] = static_cast<W>(given_mean[c]);
    factors[channels + c] = static_cast<W>(scale[c]) / sqrt(static_cast<W>(given_variance[c]) + static_cast<W>(epsilon));
  }
}
GD_KERNEL(batch_norm_apply)(const T* x, const W* factors, const U* offset, T* y, i64 n, i64 channels, i64 inner) {
  GD_GRID_LOOP(i64, i, n) {
    const i64 c = (inner == 1 ? i : i / inner) % channels;
    const W centred = static_cast<W>(load(x + i)) - factors[c];
    store(y + i, centred * factors[channels + c] + static_cast<W>(offset[c]));
  }
}
