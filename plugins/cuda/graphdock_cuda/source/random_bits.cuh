// Words of a stream, and integers made of them. ELEMENT: type of the integers. After philox.cuh.

typedef ELEMENT T;

GD_KERNEL(words)(GD_STREAM, u64* y, i64 n) {
  GD_OPEN_STREAM(stream);
  GD_GRID_LOOP(i64, at, (n + 3) / 4) {
    const Words words = stream.block(1 + at);
    for (int i = 0; i < 4 && at * 4 + i < n; ++i) y[at * 4 + i] = words.at[i];
  }
}

// low plus a word modulo span.
GD_KERNEL(bounded)(GD_STREAM, T* y, i64 n, u64 low, u64 span) {
  GD_OPEN_STREAM(stream);
  GD_GRID_LOOP(i64, at, (n + 3) / 4) {
    const Words words = stream.block(1 + at);
    for (int i = 0; i < 4 && at * 4 + i < n; ++i) y[at * 4 + i] = static_cast<T>(words.at[i] % span + low);
  }
}

// low plus floor(span * w / 2^128) of 128-bit numbers w, the first of two words the upper one.
GD_KERNEL(bounded_wide)(GD_STREAM, T* y, i64 n, u64 low, u64 span) {
  GD_OPEN_STREAM(stream);
  GD_GRID_LOOP(i64, at, (n + 1) / 2) {
    const Words words = stream.block(1 + at);
    for (int i = 0; i < 2 && at * 2 + i < n; ++i) {
      const u64 upper = words.at[2 * i], high = __umul64hi(words.at[2 * i + 1], span), sum = upper * span + high;
      y[at * 2 + i] = static_cast<T>(__umul64hi(upper, span) + (sum < high ? 1 : 0) + low);
    }
  }
}
