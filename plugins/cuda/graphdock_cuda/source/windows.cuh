// Windows over up to four dims of a batch. TYPE: of the elements.

typedef TYPE T;
typedef compute_t<T> C;

// Dims after the batch's, filled up to four in front. A window's element k of dim d is o * stride - before + k.
struct Pool {
  i64 batch;
  int size[4], out[4], window[4], stride[4], before[4];
};
struct Spot {
  i64 batch;
  int at[4];
};
GD_DEVICE Spot spot(i64 flat, const int* dims) {
  Spot s;
#pragma unroll
  for (int d = 3; d >= 0; --d) {
    const i64 above = flat / dims[d];
    s.at[d] = static_cast<int>(flat - above * dims[d]);
    flat = above;
  }
  s.batch = flat;
  return s;
}
GD_DEVICE i64 flat_at(i64 batch, const int* at, const int* dims) {
  i64 flat = batch;
#pragma unroll
  for (int d = 0; d < 4; ++d) flat = flat * dims[d] + at[d];
  return flat;
}
// The elements of the window at one position: from low to high in each dim.
struct Range {
  int low[4], high[4];
};
GD_DEVICE Range window_of(const Pool& p, const int* o) {
  Range r;
#pragma unroll
  for (int d = 0; d < 4; ++d) {
    const int begin = o[d] * p.stride[d] - p.before[d], end = begin + p.window[d];
    r.low[d] = begin > 0 ? begin : 0;
    r.high[d] = end < p.size[d] ? end : p.size[d];
  }
  return r;
}
// The positions whose windows have an element.
GD_DEVICE Range positions_with(const Pool& p, const int* i) {
  Range r;
#pragma unroll
  for (int d = 0; d < 4; ++d) {
    const int reach = i[d] + p.before[d], first = reach - p.window[d] + 1;
    r.low[d] = first > 0 ? (first + p.stride[d] - 1) / p.stride[d] : 0;
    const int last = reach / p.stride[d];
    r.high[d] = last < p.out[d] ? last + 1 : p.out[d];
  }
  return r;
}
GD_DEVICE i64 count_of(const Range& r) {
  i64 count = 1;
#pragma unroll
  for (int d = 0; d < 4; ++d) count *= r.high[d] > r.low[d] ? r.high[d] - r.low[d] : 0;
  return count;
}
// Visits a range in order; visit(at) gives false to stop.
template <class Visit> GD_DEVICE void each_of(const Range& r, Visit visit) {
  int at[4];
  for (at[0] = r.low[0]; at[0] < r.high[0]; ++at[0])
    for (at[1] = r.low[1]; at[1] < r.high[1]; ++at[1])
      for (at[2] = r.low[2]; at[2] < r.high[2]; ++at[2])
        for (at[3] = r.low[3]; at[3] < r.high[3]; ++at[3])
          if (!visit(at)) return;
}
// Where a window first has a value; -1 where it has not.
GD_DEVICE i64 first_with(const T* x, C value, i64 batch, const Range& window, const Pool& p) {
  i64 found = -1;
  each_of(window, [&](const int* at) {
    const i64 i = flat_at(batch, at, p.size);
    if (load(x + i) == value) found = i;
    return found < 0;
  });
  return found;
}
