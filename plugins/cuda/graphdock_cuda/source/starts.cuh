// Where each number begins among ascending keys. Macro: KEY: u32 or u64.

// starts[i]: how many keys are below i, for i from 0 to count.
GD_KERNEL(find_starts)(const KEY* keys, i64* starts, i64 n, i64 count) {
  GD_GRID_LOOP(i64, i, count + 1) {
    i64 low = 0, high = n;
    while (low < high) {
      const i64 middle = (low + high) / 2;
      if (static_cast<u64>(keys[middle]) < static_cast<u64>(i)) low = middle + 1;
      else high = middle;
    }
    starts[i] = low;
  }
}
