// Row-major numbers of neighbouring indices of tuples. Macro: KEY: u32 or u64.

namespace gd {
struct Dims { i64 at[MAX_RANK]; };
}

// Of `depth` indices from `first` on of each tuple of `width`; `limit` for those outside of dims.
GD_KERNEL(numbers_along)(const i64* tuples, KEY* numbers, i64 n, int width, int first, int depth, Dims dims, i64 limit) {
  GD_GRID_LOOP(i64, i, n) {
    u64 number = 0;
    bool inside = true;
    for (int axis = 0; axis < depth; ++axis) {
      const i64 at = tuples[i * width + first + axis];
      inside = inside && at >= 0 && at < dims.at[axis];
      number = number * static_cast<u64>(dims.at[axis]) + static_cast<u64>(at);
    }
    numbers[i] = static_cast<KEY>(inside ? number : static_cast<u64>(limit));
  }
}
