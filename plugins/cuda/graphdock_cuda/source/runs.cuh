// Rows that are reduced by runs of equal keys: the keys ascend, and order says which row stands at each of their places. After
// reducers.cuh.
//
// Places are taken in chunks, so that a long run has many threads: one of them per chunk and column reduces the runs that lie
// within its chunk, and notes what it has of the others; then the pieces of each other run are combined in order.
//
// Macros: TX: type of elements; KEY: u32 or u64; REDUCER; INTO: what becomes of the row that a run is written to.

namespace gd {

struct into_none {
  static constexpr bool reads = false;
  template <class C> static GD_DEVICE C of(C, C all) { return all; }
};
struct into_add {
  static constexpr bool reads = true;
  template <class C> static GD_DEVICE C of(C old, C all) { return add(old, all); }
};
struct into_sub : into_add { template <class C> static GD_DEVICE C of(C old, C all) { return sub(old, all); } };
struct into_mul : into_add { template <class C> static GD_DEVICE C of(C old, C all) { return mul(old, all); } };
struct into_div : into_add { template <class C> static GD_DEVICE C of(C old, C all) { return divide(old, all); } };
struct into_min : into_add { template <class C> static GD_DEVICE C of(C old, C all) { return minimum(old, all); } };
struct into_max : into_add { template <class C> static GD_DEVICE C of(C old, C all) { return maximum(old, all); } };

template <class R, class T, class Into> struct runs {
  typedef typename R::acc acc;

  static GD_DEVICE void write(T* out, i64 at, acc all, i64 length) {
    if constexpr (Into::reads) store(out + at, Into::of(to_compute(out[at]), R::finish(all, length)));
    else store(out + at, R::finish(all, length));
  }

  // pieces[2 chunk]: of the run that began before the chunk; pieces[2 chunk + 1]: of the run that goes on behind it
  static GD_DEVICE void within(const T* rows, const i32* order, const KEY* keys, T* out, acc* pieces, const u64* bad, i64 n, i64 width,
                               i64 limit, i64 chunk, i64 row_step, int step) {
    if (*bad != ~0ull) return;
    const i64 chunks = ceil_div(n, chunk);
    GD_GRID_LOOP(i64, task, chunks * width) {
      const i64 c = task / width, j = task - c * width, begin = c * chunk, end = begin + chunk < n ? begin + chunk : n;
      KEY key = keys[begin];
      bool began_before = begin > 0 && keys[begin - 1] == key;
      i64 start = begin;
      acc all = R::first();
      for (i64 place = begin; place < end; ++place) {
        const KEY here = keys[place];
        if (here != key) {
          if (began_before) pieces[2 * c * width + j] = all;
          else if (static_cast<u64>(key) < static_cast<u64>(limit)) write(out, static_cast<i64>(key) * width + j, all, place - start);
          key = here, start = place, began_before = false, all = R::first();
        }
        const i64 row = order == nullptr ? place : order[place];
        all = R::combine(all, R::map(to_compute(rows[row * row_step + j * step]), 0));
      }
      if (began_before) pieces[2 * c * width + j] = all;
      else if (end < n && keys[end] == key) pieces[(2 * c + 1) * width + j] = all;
      else if (static_cast<u64>(key) < static_cast<u64>(limit)) write(out, static_cast<i64>(key) * width + j, all, end - start);
    }
  }

  static GD_DEVICE void across(const KEY* keys, T* out, const acc* pieces, const u64* bad, i64 n, i64 width, i64 limit, i64 chunk) {
    if (*bad != ~0ull) return;
    const i64 chunks = ceil_div(n, chunk);
    GD_GRID_LOOP(i64, task, (chunks - 1) * width) {
      const i64 c = task / width, j = task - c * width, begin = c * chunk;
      i64 end = begin + chunk;
      const KEY key = keys[end - 1];
      if (keys[end] != key || (begin > 0 && keys[begin - 1] == key) || static_cast<u64>(key) >= static_cast<u64>(limit)) continue;
      i64 low = begin, high = end - 1;  // where the run begins
      while (low < high) {
        const i64 middle = (low + high) / 2;
        if (keys[middle] < key) low = middle + 1;
        else high = middle;
      }
      const i64 start = low;
      acc all = pieces[(2 * c + 1) * width + j];
      i64 other = c;
      do {
        all = R::combine(all, pieces[2 * ++other * width + j]);
        low = end;
        end = end + chunk < n ? end + chunk : n;
      } while (end < n && keys[end] == key);
      for (high = end; low < high;) {  // where it ends
        const i64 middle = (low + high) / 2;
        if (keys[middle] == key) low = middle + 1;
        else high = middle;
      }
      write(out, static_cast<i64>(key) * width + j, all, low - start);
    }
  }
};

typedef runs<REDUCER, TX, INTO> these_runs;

}  // namespace gd

GD_KERNEL(runs_within)(const TX* rows, const i32* order, const KEY* keys, TX* out, these_runs::acc* pieces, const u64* bad, i64 n,
                       i64 width, i64 limit, i64 chunk, i64 row_step, int step) {
  these_runs::within(rows, order, keys, out, pieces, bad, n, width, limit, chunk, row_step, step);
}
GD_KERNEL(runs_across)(const KEY* keys, TX* out, const these_runs::acc* pieces, const u64* bad, i64 n, i64 width, i64 limit,
                       i64 chunk) {
  these_runs::across(keys, out, pieces, bad, n, width, limit, chunk);
}
