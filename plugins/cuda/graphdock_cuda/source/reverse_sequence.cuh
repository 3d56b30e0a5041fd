// The first elements of slices in reverse order. E: an element, see word.cuh; INDEX: type of the lengths.

GD_KERNEL(check_lengths)(const INDEX* lengths, i64 n, i64 most, i64* words, i64 code) {
  GD_GRID_LOOP(i64, i, n) {
    const i64 length = lengths[i];
    if (length >= 0 && length <= most) continue;
    report(words, code, i, length);
  }
}

// size, inner: of the axis that is reversed, and elements within one step of it; batch, batch_inner: of the axis of lengths.
GD_KERNEL(reverse_sequence)(const E* x, const INDEX* lengths, E* y, i64 n, i64 size, i64 inner, i64 batch, i64 batch_inner) {
  GD_GRID_LOOP(i64, i, n) {
    const i64 at = i / inner % size, length = lengths[i / batch_inner % batch];
    y[i] = at < length && length <= size ? x[i + (length - 1 - 2 * at) * inner] : x[i];
  }
}
