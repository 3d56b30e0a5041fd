// Product of a sparse matrix, whose elements are sorted by row, and a dense one; the terms of a row are added in order. After
// complex.cuh and scalar.cuh. Macros: TX: type of elements.

namespace gd {

template <class C> GD_DEVICE C conjugated(C a) { return a; }
template <class P> GD_DEVICE complex_t<P> conjugated(complex_t<P> a) { return conj(a); }

}  // namespace gd

// starts: where each row begins in order; column: which number of an index tuple is the column of b's row.
GD_KERNEL(sparse_matmul)(const i64* tuples, const TX* values, const i32* order, const i64* starts, const TX* b, TX* out, const u64* bad,
                         i64 rows, i64 columns, int column, i64 row_step, i64 column_step, int conjugate_a, int conjugate_b) {
  if (*bad != ~0ull) return;
  typedef compute_t<TX> C;
  GD_GRID_LOOP(i64, i, rows * columns) {
    const i64 row = i / columns, j = i - row * columns;
    C sum = from_compute<C>(0.0f);
    for (i64 p = starts[row]; p < starts[row + 1]; ++p) {
      const i64 at = order[p];
      const C x = to_compute(values[at]), y = to_compute(b[tuples[2 * at + column] * row_step + j * column_step]);
      sum = add(sum, mul(conjugate_a ? conjugated(x) : x, conjugate_b ? conjugated(y) : y));
    }
    store(out + i, sum);
  }
}
