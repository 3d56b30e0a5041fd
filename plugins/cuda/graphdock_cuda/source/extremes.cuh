// The smallest and the largest of integers. Macro: INDEX: i32 or i64.

GD_KERNEL(extremes)(const INDEX* x, i64* smallest, i64* largest, i64 n) {
  i64 low = 0x7f7f7f7f7f7f7f7fll, high = -1;
  GD_GRID_LOOP(i64, i, n) {
    low = x[i] < low ? static_cast<i64>(x[i]) : low;
    high = x[i] > high ? static_cast<i64>(x[i]) : high;
  }
  if (low < 0x7f7f7f7f7f7f7f7fll) {
    atomicMin(smallest, low);
    atomicMax(largest, high);
  }
}
