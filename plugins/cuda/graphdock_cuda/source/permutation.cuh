// The inverse of a permutation, and whether it was one. ELEMENT: type of elements.

typedef ELEMENT T;

GD_KERNEL(invert)(const T* x, T* y, i64 n) {
  GD_GRID_LOOP(i64, i, n) {
    const i64 place = x[i];
    if (place >= 0 && place < n) y[place] = static_cast<T>(i);
  }
}

// y was -1 throughout: what is still so, nothing points to.
GD_KERNEL(check)(const T* y, i64 n, i64* words, i64 code) {
  GD_GRID_LOOP(i64, i, n) {
    if (y[i] >= 0) continue;
    report(words, code, n, i);
  }
}
