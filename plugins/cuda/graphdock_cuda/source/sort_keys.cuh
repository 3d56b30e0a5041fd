// Keys to sort elements by. After sort_order.cuh. Macros: TX: type of elements; KEY: u32 or u64.

// order: where the elements of each row are taken from, or null. A key is element `part` of `stride` neighbouring ones.
GD_KERNEL(make_keys)(const TX* x, const i32* order, KEY* keys, i64 rows, i64 n, int stride, int part, int descending) {
  const KEY all = static_cast<KEY>(~static_cast<KEY>(0)) >> (8 * (sizeof(KEY) - sizeof(TX)));
  GD_GRID_LOOP(i64, i, rows * n) {
    const i64 from = order == nullptr ? i : i / n * n + order[i];
    const KEY key = key_of(x[from * stride + part]);
    keys[i] = descending ? all - key : key;
  }
}
