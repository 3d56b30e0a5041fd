// Index tuples as the numbers of the rows that they name, checked. After base.cuh.
//
// Macros: INDEX: i32 or i64; KEY: u32 or u64, which holds every row's number and the number of rows.

namespace gd {

struct Dims { i64 at[MAX_RANK]; };
constexpr u64 NONE_BAD = ~0ull;

}  // namespace gd

constexpr int DROP_NEGATIVE = 1, DROP_BEYOND = 2, BY_TUPLE = 4;

// rows[i]: of tuple i. A tuple out of bounds gets `limit`, and `bad` the lowest axis * n + i of those, or i * depth + axis (BY_TUPLE).
// What is to be dropped gets `limit` too, and is not bad.
GD_KERNEL(places)(const INDEX* indices, KEY* rows, u64* bad, i64 n, int depth, Dims dims, i64 limit, int flags) {
  GD_GRID_LOOP(i64, i, n) {
    u64 row = 0;
    bool inside = true;
    for (int axis = 0; axis < depth; ++axis) {
      const i64 at = indices[i * depth + axis], size = dims.at[axis];
      if (at < 0 || at >= size) {
        if (inside && !(flags & (at < 0 ? DROP_NEGATIVE : DROP_BEYOND)))
          atomicMin(bad, static_cast<u64>(flags & BY_TUPLE ? i * depth + axis : axis * n + i));
        inside = false;
      }
      row = row * static_cast<u64>(size) + static_cast<u64>(at);
    }
    rows[i] = inside ? static_cast<KEY>(row) : static_cast<KEY>(limit);
  }
}

GD_KERNEL(report_places)(const INDEX* indices, const u64* bad, i64 n, int depth, int flags, i64* words, i64 code) {
  if (*bad == NONE_BAD) return;
  const i64 at = static_cast<i64>(*bad), axis = at / n;
  report(words, code, at, indices[flags & BY_TUPLE ? at : (at - axis * n) * depth + axis]);
}
