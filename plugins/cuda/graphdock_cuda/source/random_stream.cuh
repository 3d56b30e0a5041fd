// A stream as five words, and numbers of one that is given as such. ELEMENT: of the numbers. After random.cuh.

GD_KERNEL(stream_words)(GD_STREAM, u64* y) {
  GD_OPEN_STREAM(stream);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    const u64 words[5] = {stream.key[0], stream.key[1], stream.outer, stream.iteration, stream.ordinal};
    for (int i = 0; i < 5; ++i) y[i] = words[i];
  }
}

GD_KERNEL(uniform_of)(const u64* words, T* y, i64 n) {
  const u64 key0 = words[0], key1 = words[1], outer = words[2], iteration = words[3];
  const u64* ordinal = words + 4;
  DRAW_ALL(T, )
}
