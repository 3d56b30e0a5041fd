// Running combinations along the reduced axis of x[outer, n, inner], from a reducer. exclusive: an element does not go into its own
// result; reverse: from the end.
//
// Macros: TX: type of elements; REDUCER.

namespace gd {

template <class R, class T> struct running {
  typedef typename R::acc acc;
  static constexpr int ITEMS = 4;

  // inner is 1: a block for each part of a row, which begins with the combination of all parts before it, if carries holds those.
  static GD_DEVICE void rows(const T* x, T* out, const acc* carries, i64 count, i64 n, i64 parts, i64 part_size, bool exclusive,
                             bool reverse) {
    for (i64 block = blockIdx.x; block < count * parts; block += gridDim.x) {
      const i64 row = block / parts, begin = (block - row * parts) * part_size;
      const i64 end = begin + part_size < n ? begin + part_size : n;
      acc carry = carries == nullptr ? R::first() : carries[block];
      const T* from = x + row * n;
      T* to = out + row * n;
      for (i64 tile = begin; tile < end; tile += blockDim.x * ITEMS) {
        const i64 own = tile + static_cast<i64>(threadIdx.x) * ITEMS;
        acc values[ITEMS], all = R::first();
#pragma unroll
        for (int j = 0; j < ITEMS; ++j) {
          const i64 i = own + j;
          values[j] = i < end ? R::map(to_compute(from[reverse ? n - 1 - i : i]), i) : R::first();
          all = R::combine(all, values[j]);
        }
        acc total;
        acc before = R::combine(carry, block_exclusive_scan(all, combining<R>(), R::first(), &total));
#pragma unroll
        for (int j = 0; j < ITEMS; ++j) {
          const i64 i = own + j;
          const acc with = R::combine(before, values[j]);
          if (i < end) store(to + (reverse ? n - 1 - i : i), exclusive ? before : with);
          before = with;
        }
        carry = R::combine(carry, total);
      }
    }
  }

  // A thread for each column.
  static GD_DEVICE void columns(const T* x, T* out, i64 outer, i64 n, i64 inner, bool exclusive, bool reverse) {
    GD_GRID_LOOP(i64, column, outer * inner) {
      const i64 above = column / inner, at = above * n * inner + (column - above * inner);
      acc all = R::first();
      for (i64 i = 0; i < n; ++i) {
        const i64 place = at + (reverse ? n - 1 - i : i) * inner;
        const acc with = R::combine(all, R::map(to_compute(x[place]), i));
        store(out + place, exclusive ? all : with);
        all = with;
      }
    }
  }

  // What each part of a row comes to, in the order of the scan.
  static GD_DEVICE void totals(const T* x, acc* carries, i64 count, i64 n, i64 parts, i64 part_size, bool reverse) {
    for (i64 block = blockIdx.x; block < count * parts; block += gridDim.x) {
      const i64 row = block / parts, begin = (block - row * parts) * part_size;
      const i64 end = begin + part_size < n ? begin + part_size : n;
      acc all = R::first();
      for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x)
        all = R::combine(all, R::map(to_compute(x[row * n + (reverse ? n - 1 - i : i)]), i));
      all = block_reduce(all, combining<R>());
      if (threadIdx.x == 0) carries[block] = all;
    }
  }

  // The totals of a row as what comes before each of them; a block for each row.
  static GD_DEVICE void carry(acc* carries, i64 count, i64 parts) {
    for (i64 row = blockIdx.x; row < count; row += gridDim.x) {
      acc before = R::first();
      for (i64 tile = 0; tile < parts; tile += blockDim.x) {
        const i64 i = tile + threadIdx.x;
        acc total;
        const acc value = i < parts ? carries[row * parts + i] : R::first();
        const acc sum = block_exclusive_scan(value, combining<R>(), R::first(), &total);
        if (i < parts) carries[row * parts + i] = R::combine(before, sum);
        before = R::combine(before, total);
      }
    }
  }
};

typedef running<REDUCER, TX> this_scan;

}  // namespace gd

GD_KERNEL(scan_rows)(const TX* x, TX* out, const this_scan::acc* carries, i64 rows, i64 n, i64 parts, i64 part_size, int exclusive,
                     int reverse) {
  this_scan::rows(x, out, carries, rows, n, parts, part_size, exclusive, reverse);
}
GD_KERNEL(scan_columns)(const TX* x, TX* out, i64 outer, i64 n, i64 inner, int exclusive, int reverse) {
  this_scan::columns(x, out, outer, n, inner, exclusive, reverse);
}
GD_KERNEL(scan_totals)(const TX* x, this_scan::acc* carries, i64 rows, i64 n, i64 parts, i64 part_size, int reverse) {
  this_scan::totals(x, carries, rows, n, parts, part_size, reverse);
}
GD_KERNEL(scan_carry)(this_scan::acc* carries, i64 rows, i64 parts) { this_scan::carry(carries, rows, parts); }
