// Normal numbers, drawn in the type that they are computed in. After random.cuh.

GD_KERNEL(normal)(GD_STREAM, T* y, i64 n) {
  DRAW_ALL(WIDE, for (int i = 0; i < COUNT; i += 2) to_normal(values.at[i], values.at[i + 1]);)
}
