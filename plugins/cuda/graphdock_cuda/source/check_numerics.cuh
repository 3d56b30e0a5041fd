// Numbers copied, and what among them is none. ELEMENT: type of elements.

typedef ELEMENT T;

// *found: bit 0 for NaN, bit 1 for infinity; zero before.
GD_KERNEL(look)(const T* x, T* y, i64 n, u32* found) {
  u32 here = 0;
  GD_GRID_LOOP(i64, i, n) {
    const T value = x[i];
    const compute_t<T> number = to_compute(value);
    if (number != number) here |= 1;
    else if (fabs(number) == limits<T>::infinity()) here |= 2;
    if (y != x) y[i] = value;
  }
  if (here) atomicOr(found, here);
}

GD_KERNEL(tell)(const u32* found, i64* words, i64 code) {
  if (*found == 0) return;
  report(words, code, *found, 0);
}
