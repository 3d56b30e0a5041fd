// Distinct elements of a vector, of which `order` says how they are sorted. After complex.cuh and sort_order.cuh.
//
// Macros: TX: type of elements; OUT: i32 or i64.

namespace gd {

template <class T> GD_DEVICE bool alike(T a, T b) { return to_compute(a) == to_compute(b); }
template <class T> GD_DEVICE bool before(T a, T b) { return key_of(a) < key_of(b); }
#ifdef GD_COMPLEX
template <class P> GD_DEVICE bool before(complex_t<P> a, complex_t<P> b) {
  return key_of(a.re) != key_of(b.re) ? key_of(a.re) < key_of(b.re) : key_of(a.im) < key_of(b.im);
}
#endif

}  // namespace gd

// heads[p]: whether a group begins at place p of the order; firsts[i]: whether element i is the first one of its group. Both have room
// for a last 0.
GD_KERNEL(mark_groups)(const TX* x, const i32* order, i32* heads, i32* firsts, i64 n) {
  GD_GRID_LOOP(i64, p, n + 1) {
    if (p == n) {
      heads[n] = firsts[n] = 0;
    } else {
      const bool head = p == 0 || !alike(x[order[p]], x[order[p - 1]]);
      heads[p] = head;
      firsts[order[p]] = head;
    }
  }
}

// groups: the sums of heads before each place; starts[g]: where group g begins
GD_KERNEL(start_groups)(const i32* groups, i32* starts, i64 n) {
  GD_GRID_LOOP(i64, p, n + 1) if (p == n || groups[p + 1] != groups[p]) starts[groups[p]] = static_cast<i32>(p);
}

// ranks: the sums of firsts before each element
GD_KERNEL(write_groups)(const TX* x, const i32* order, const i32* groups, const i32* starts, const i32* ranks, TX* y, OUT* places,
                        OUT* counts, i64 n) {
  GD_GRID_LOOP(i64, p, n) {
    const i32 group = groups[p + 1] - 1, first = order[starts[group]], rank = ranks[first];
    places[order[p]] = rank;
    if (starts[group] != p) continue;
    y[rank] = x[first];
    if (counts != nullptr) counts[rank] = starts[group + 1] - starts[group];
  }
}

// flags[i]: whether no element of y is like x[i]; order: of y
GD_KERNEL(not_among)(const TX* x, const TX* y, const i32* order, u8* flags, i64 n, i64 m) {
  GD_GRID_LOOP(i64, i, n) {
    const TX value = x[i];
    i64 low = 0, high = m;
    while (low < high) {
      const i64 middle = (low + high) / 2;
      if (before(y[order[middle]], value)) low = middle + 1;
      else high = middle;
    }
    flags[i] = !(low < m && alike(y[order[low]], value));
  }
}

GD_KERNEL(take)(const TX* x, const i64* places, TX* out, OUT* out_places, i64 n) {
  GD_GRID_LOOP(i64, i, n) {
    out[i] = x[places[i]];
    out_places[i] = static_cast<OUT>(places[i]);
  }
}
