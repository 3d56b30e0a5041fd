// Householder's reflections, as LAPACK makes them, so that signs are those of NumPy. After complex.cuh, block.cuh and matrix.cuh.
//
// Matrices lie by columns: element (i, j) at j * ld + i. A reflection is I - tau v v^H; the first element of v is 1 and is not
// stored. All threads of the block call these, and are in step at the end.

namespace gd {

// Make the reflection whose adjoint turns x, of n elements step apart, into a real multiple of the first axis: x[0] becomes that,
// and the rest of x the rest of v.
template <class T> GD_DEVICE T make_reflection(T* x, i64 step, int n) {
  typedef part_t<T> P;
  const T alpha = x[0];
  double rest = 0;
  for (int i = 1 + threadIdx.x; i < n; i += blockDim.x) rest += square_of(x[i * step]);
  rest = block_reduce(rest, sum_op());
  if (rest == 0 && imaginary_part(alpha) == P(0)) return T{};
  const P beta = -::copysign(static_cast<P>(::sqrt(rest + square_of(alpha))), real_part(alpha));
  const T tau = (of_part<T>(beta) - alpha) / of_part<T>(beta), scale = of_part<T>(P(1)) / (alpha - of_part<T>(beta));
  for (int i = 1 + threadIdx.x; i < n; i += blockDim.x) x[i * step] = x[i * step] * scale;
  if (threadIdx.x == 0) x[0] = of_part<T>(beta);
  __syncthreads();
  return tau;
}

// a = (I - tau v v^H) a, of n rows; a warp takes a column.
template <class T> GD_DEVICE void reflect_left(T* a, i64 ld, int n, int columns, const T* v, i64 step, T tau) {
  if (!is_zero(tau))
    for (int j = warp_id(); j < columns; j += warps()) {
      T* const column = a + j * ld;
      T dot{};
      for (int i = lane_id(); i < n; i += 32) dot += i == 0 ? column[0] : conjugated(v[i * step]) * column[i];
      dot = tau * warp_reduce_all(dot, sum_op());
      for (int i = lane_id(); i < n; i += 32) column[i] -= i == 0 ? dot : dot * v[i * step];
    }
  __syncthreads();
}

// a = a (I - tau v v^H), of n columns; a thread takes a row.
template <class T> GD_DEVICE void reflect_right(T* a, i64 ld, int rows, int n, const T* v, i64 step, T tau) {
  if (!is_zero(tau))
    for (int i = threadIdx.x; i < rows; i += blockDim.x) {
      T dot = a[i];
      for (int j = 1; j < n; ++j) dot += a[j * ld + i] * v[j * step];
      dot = dot * tau;
      a[i] -= dot;
      for (int j = 1; j < n; ++j) a[j * ld + i] -= dot * conjugated(v[j * step]);
    }
  __syncthreads();
}

// The identity, of any shape.
template <class T> GD_DEVICE void set_identity(T* a, i64 ld, int rows, int columns) {
  for (int j = warp_id(); j < columns; j += warps())
    for (int i = lane_id(); i < rows; i += 32) a[j * ld + i] = of_part<T>(part_t<T>(i == j));
  __syncthreads();
}

// a (m by n) becomes r above and on its diagonal, with the reflections below it.
template <class T> GD_DEVICE void reflect_columns(T* a, i64 ld, int m, int n, T* tau) {
  for (int k = 0; k < min(m, n); ++k) {
    T* const x = a + k * ld + k;
    const T own = make_reflection(x, 1, m - k);
    if (threadIdx.x == 0) tau[k] = own;
    reflect_left(x + ld, ld, m - k, n - k - 1, x, 1, conjugated(own));
  }
}

// q = H_0 H_1 ... q, by the reflections below the diagonal of a, which begin offset rows below it.
template <class T> GD_DEVICE void apply_reflections(const T* a, i64 ld, int m, int count, const T* tau, T* q, i64 q_ld, int columns, int offset) {
  for (int k = count - 1; k >= 0; --k)
    reflect_left(q + k + offset, q_ld, m - k - offset, columns, a + k * ld + k + offset, 1, tau[k]);
}

// Rotations of neighbouring columns of q, one after the other: (j, j + 1) from first on, count of them, or from the last one.
// A thread takes a row.
template <class T, class P> GD_DEVICE void rotate_columns(T* q, i64 ld, int rows, int first, int count, bool backward, const P* cosines, const P* sines) {
  for (int i = threadIdx.x; i < rows; i += blockDim.x)
    for (int step = 0; step < count; ++step) {
      const int j = backward ? count - 1 - step : step;
      const P c = cosines[j], s = sines[j];
      T* const at = q + (first + j) * ld + i;
      const T right = at[ld], left = at[0];
      at[ld] = right * c - left * s;
      at[0] = right * s + left * c;
    }
}

// ---- numbers of one rotation, as LAPACK's dlartg

template <class P> GD_DEVICE void make_rotation(P f, P g, P& c, P& s, P& r) {
  if (g == P(0)) {
    c = P(1), s = P(0), r = f;
  } else if (f == P(0)) {
    c = P(0), s = ::copysign(P(1), g), r = fabs(g);
  } else {
    const P length = hypot(f, g);
    c = fabs(f) / length, r = ::copysign(length, f), s = g / r;
  }
}

}  // namespace gd
