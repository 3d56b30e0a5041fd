// Singular value decompositions as LAPACK's gesdd makes them: reflections to a bidiagonal matrix, of a factor of QR where the
// matrix is much longer than wide, then QR iterations. After complex.cuh, block.cuh, matrix.cuh, reflections.cuh and
// bidiagonal.cuh; ELEMENT is the matrices' type, VALUE that of the values.
//
// It works on the matrix, or its adjoint where that is the longer one: tall is m by n, m >= n. Its left vectors, m by most, have n
// columns or m. Per block it has room for tall (m n), the factor (n n), left (m most), right (n n), 3 n factors, and 6 n reals.

namespace gd {

// q b p^H = a: b's diagonal into d, what stands above it into e. Reflections stay in a, for q in columns and for p in rows.
template <class T, class P> GD_DEVICE void make_bidiagonal(T* a, i64 ld, int m, int n, P* d, P* e, T* tau_q, T* tau_p) {
  for (int k = 0; k < n; ++k) {
    T* const x = a + k * ld + k;
    const T own = make_reflection(x, 1, m - k);
    if (threadIdx.x == 0) tau_q[k] = own, d[k] = real_part(x[0]);
    reflect_left(x + ld, ld, m - k, n - k - 1, x, 1, conjugated(own));
    if (k == n - 1) break;
    T* const row = x + ld;
    for (int j = threadIdx.x; j < n - k - 1; j += blockDim.x) row[j * ld] = conjugated(row[j * ld]);
    __syncthreads();
    const T other = make_reflection(row, ld, n - k - 1);
    if (threadIdx.x == 0) tau_p[k] = other, e[k] = real_part(row[0]);
    reflect_right(row + 1, ld, m - k - 1, n - k - 1, row, ld, other);
  }
  __syncthreads();
}

}  // namespace gd

GD_KERNEL(svd)(const ELEMENT* input, VALUE* values, ELEMENT* u, ELEMENT* v, ELEMENT* buffer, i64 each, int rows, int columns, int most, int wants_vectors, int by_factor, i64* words, i64 code) {
  typedef part_t<ELEMENT> P;
  const bool turned = rows < columns;
  const int m = turned ? columns : rows, n = turned ? rows : columns;
  const i64 matrix = blockIdx.x, square = static_cast<i64>(n) * n, size = static_cast<i64>(m) * n;
  ELEMENT* const tall = workspace(buffer, each);
  ELEMENT* const factor = tall + size;
  ELEMENT* const left = factor + (by_factor ? square : 0);
  ELEMENT* const right = left + (wants_vectors ? static_cast<i64>(m) * most : 0);
  ELEMENT* const tau = right + (wants_vectors ? square : 0);
  ELEMENT *const tau_q = tau + n, *const tau_p = tau_q + n;
  P* const d = reinterpret_cast<P*>(tau_p + n);
  P *const e = d + n, *const lists = e + n;
  const ELEMENT* const from = input + matrix * size;
  for (int i = warp_id(); i < rows; i += warps())
    for (int j = lane_id(); j < columns; j += 32) {
      const ELEMENT value = from[static_cast<i64>(i) * columns + j];
      if (turned) tall[static_cast<i64>(i) * m + j] = conjugated(value);
      else tall[static_cast<i64>(j) * m + i] = value;
    }
  __syncthreads();
  // with a factor of QR, tall = q r: LAPACK goes on with r, or with r^H where the matrix was turned
  ELEMENT* core = tall;
  int core_m = m;
  const bool swaps = by_factor && turned;
  if (by_factor) {
    reflect_columns(tall, m, m, n, tau);
    core = factor, core_m = n;
    for (int j = warp_id(); j < n; j += warps())
      for (int i = lane_id(); i < n; i += 32) {
        const ELEMENT value = i <= j ? tall[static_cast<i64>(j) * m + i] : ELEMENT{};
        if (swaps) factor[static_cast<i64>(i) * n + j] = conjugated(value);
        else factor[static_cast<i64>(j) * n + i] = value;
      }
    __syncthreads();
  }
  make_bidiagonal(core, core_m, core_m, n, d, e, tau_q, tau_p);
  // z: vectors of core from the left, and w: from the right; with swaps the tall matrix has them the other way
  ELEMENT *const z = swaps ? right : left, *const w = swaps ? left : right;
  const i64 z_ld = swaps ? n : m, w_ld = swaps ? m : n;
  if (wants_vectors) {
    set_identity(left, m, m, most);
    set_identity(right, n, n, n);
    // where core is tall itself, columns beyond n belong to the rest of its basis
    apply_reflections(core, core_m, core_m, n, tau_q, z, z_ld, by_factor ? n : most, 0);
    for (int k = n - 2; k >= 0; --k)
      reflect_left(w + k + 1, w_ld, n - k - 1, n, core + static_cast<i64>(k + 1) * core_m + k, core_m, tau_p[k]);
    if (by_factor) apply_reflections(tall, m, m, n, tau, left, m, most, 0);
  }
  __shared__ int first, count, backward, failed;
  bidiagonal<P> work(d, e, lists, n);
  if (threadIdx.x == 0) work.begin();
  for (;;) {
    if (threadIdx.x == 0) {
      bool more = work.step();
      while (more && !wants_vectors) more = work.step();
      first = work.first, count = more ? work.count : 0, backward = work.backward, failed = work.failed;
    }
    __syncthreads();
    if (count > 0) {
      rotate_columns(w, w_ld, swaps ? m : n, first, count, backward, lists, lists + n);
      rotate_columns(z, z_ld, swaps ? n : m, first, count, backward, lists + 2 * n, lists + 3 * n);
    }
    const bool more = count > 0;
    __syncthreads();
    if (!more) break;
  }
  if (failed) {
    if (threadIdx.x == 0) refuse(words, code, matrix);
    return;
  }
  // u and v of the input: left and right, or the other way where it was turned. A negative value turns LAPACK's right vector,
  // which is w, but the left one of a single column.
  const bool turns_left = swaps != (n == 1);
  ELEMENT *const left_out = turned ? v : u, *const right_out = turned ? u : v;
  for (int j = warp_id(); j < most; j += warps()) {
    int at = j;
    P value = P(0);
    if (j < n) {
      value = d[j];
      int before = 0;
      for (int i = lane_id(); i < n; i += 32) before += fabs(d[i]) > fabs(value) || (fabs(d[i]) == fabs(value) && i < j);
      at = warp_reduce_all(before, sum_op());
      if (lane_id() == 0) values[matrix * n + at] = from_compute<VALUE>(fabs(value));
    }
    if (!wants_vectors) continue;
    const P turn = value < P(0) ? P(-1) : P(1);
    for (int i = lane_id(); i < m; i += 32)
      left_out[(matrix * m + i) * most + at] = left[static_cast<i64>(j) * m + i] * (turns_left ? turn : P(1));
    if (j < n)
      for (int i = lane_id(); i < n; i += 32)
        right_out[matrix * square + static_cast<i64>(i) * n + at] = right[static_cast<i64>(j) * n + i] * (turns_left ? P(1) : turn);
  }
}
