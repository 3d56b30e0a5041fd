// Sets: elements sorted by group, then by value. Macros: TX: type of elements; KEY: u32 or u64, of groups.

// Groups of elements in another order.
GD_KERNEL(take_groups)(const KEY* groups, const i32* order, KEY* out, i64 n) { GD_GRID_LOOP(i64, i, n) out[i] = groups[order[i]]; }

namespace gd {

// Whether place p holds another element of a set than the place before it.
GD_DEVICE bool begins(const TX* values, const i32* order, const KEY* groups, i64 p) {
  return p == 0 || groups[p] != groups[p - 1] || values[order[p]] != values[order[p - 1]];
}

}  // namespace gd

GD_KERNEL(count_sets)(const TX* values, const i32* order, const KEY* groups, i32* sizes, const u64* bad, i64 n) {
  if (*bad != ~0ull) return;
  GD_GRID_LOOP(i64, p, n) if (begins(values, order, groups, p)) atomicAdd(&sizes[groups[p]], 1);
}

// Elements below `split` are of the first sets. what: 0 a-b, 1 b-a, 2 intersection, 3 union.
GD_KERNEL(keep_elements)(const TX* values, const i32* order, const KEY* groups, u8* flags, i64 n, i64 split, int what) {
  GD_GRID_LOOP(i64, p, n) {
    flags[p] = 0;
    if (!begins(values, order, groups, p)) continue;
    bool first = false, second = false;
    i64 q = p;
    do {
      if (order[q] < split) first = true;
      else second = true;
      ++q;
    } while (q < n && !begins(values, order, groups, q));
    flags[p] = what == 0 ? first && !second : what == 1 ? second && !first : what == 2 ? first && second : true;
  }
}

GD_KERNEL(take_kept)(const TX* values, const i32* order, const KEY* groups, const i64* kept, KEY* out_groups, TX* out, i64 n) {
  GD_GRID_LOOP(i64, i, n) {
    out_groups[i] = groups[kept[i]];
    out[i] = values[order[kept[i]]];
  }
}
