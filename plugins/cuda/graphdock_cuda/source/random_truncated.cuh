// Normal numbers within two standard deviations: quantiles of the middle of the interval that the bits stand for. After random.cuh.

GD_DEVICE double truncated(double u) {
  const double half_step = same<WIDE, double>::value ? 5.5511151231257827021e-17 : 2.98023223876953125e-08;
  const double centred = (u + (half_step - 0.5)) * 0.95449973610364158560;
  return quantile(centred, 0.5 - fabs(centred));
}

GD_KERNEL(truncated_normal)(GD_STREAM, T* y, i64 n) {
  GD_OPEN_STREAM(stream);
  constexpr int COUNT = uniforms<WIDE>::count;
  GD_GRID_LOOP(i64, at, (n + COUNT - 1) / COUNT) {
    const uniforms<WIDE> values(stream.block(1 + at));
    for (int i = 0; i < COUNT && at * COUNT + i < n; ++i) store(y + at * COUNT + i, truncated(values.at[i]));
  }
}
