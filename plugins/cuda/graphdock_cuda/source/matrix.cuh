// What kernels of matrices share: numbers that may be complex, and memory to work in. After complex.cuh and block.cuh.
//
// One block has one matrix of a batch: its lanes go along rows of memory, its warps across them.

namespace gd {

template <class T> struct part { typedef T type; };
template <class P> struct part<complex_t<P>> { typedef P type; };
// The type of a number's real part.
template <class T> using part_t = typename part<T>::type;

template <class T> GD_DEVICE T real_part(T a) { return a; }
template <class P> GD_DEVICE P real_part(complex_t<P> a) { return a.re; }
template <class T> GD_DEVICE T imaginary_part(T) { return T(0); }
template <class P> GD_DEVICE P imaginary_part(complex_t<P> a) { return a.im; }
template <class T> GD_DEVICE T conjugated(T a) { return a; }
template <class P> GD_DEVICE complex_t<P> conjugated(complex_t<P> a) { return conj(a); }
template <class T> GD_DEVICE T magnitude(T a) { return fabs(a); }
template <class P> GD_DEVICE P magnitude(complex_t<P> a) { return abs(a); }
// |a|^2, as a double, which no float overflows.
template <class T> GD_DEVICE double square_of(T a) {
  const double re = real_part(a), im = imaginary_part(a);
  return re * re + im * im;
}
template <class T> GD_DEVICE bool is_zero(T a) { return real_part(a) == part_t<T>(0) && imaginary_part(a) == part_t<T>(0); }
// A real number as T.
template <class T> GD_DEVICE T of_part(part_t<T> a) { return from_compute<T>(a); }

// Where a block works: in dynamic shared memory where each is 0, else in its own part of a buffer.
template <class T> GD_DEVICE T* workspace(T* buffer, i64 each) {
  GD_DYNAMIC_SHARED(unsigned char, shared);
  return each == 0 ? reinterpret_cast<T*>(shared) : buffer + static_cast<i64>(blockIdx.x) * each;
}

GD_DEVICE int warps() { return blockDim.x >> 5; }

// Note an error, of the matrix that this block has; by one thread.
GD_DEVICE void refuse(i64* words, i64 code, i64 first) {
  words[0] = first;
  words[1] = 0;
  __threadfence_system();
  words[2] = code;
}

// ---- matrices by rows: element (i, j) of n columns at i * n + j

// The largest element that remains of a column, the first of equals. NaN is larger than all.
template <class T> struct pivot {
  part_t<T> size;
  int row;
};
struct better_pivot {
  template <class T> GD_DEVICE pivot<T> operator()(pivot<T> a, pivot<T> b) const {
    const bool a_nan = a.size != a.size, b_nan = b.size != b.size;
    if (a_nan != b_nan) return a_nan ? a : b;
    return b.size > a.size || ((b.size == a.size || a_nan) && b.row < a.row) ? b : a;
  }
};

// Doolittle's factors in place, by rows that are exchanged; order follows the exchanges. stop: at a column of zeros.
// Returns 0 where it stopped, else the sign of the permutation. Begins and ends with all threads in step.
template <class T, class I> GD_DEVICE int eliminate(T* a, int n, I* order, bool stop) {
  int sign = 1;
  for (int k = 0; k < n; ++k) {
    pivot<T> best{part_t<T>(-1), n};
    for (int i = k + threadIdx.x; i < n; i += blockDim.x)
      best = better_pivot()(best, pivot<T>{magnitude(a[static_cast<i64>(i) * n + k]), i});
    best = block_reduce(best, better_pivot());
    if (best.size == part_t<T>(0)) {
      if (stop) return 0;
      continue;
    }
    T* const upper = a + static_cast<i64>(k) * n;
    if (best.row != k) {
      sign = -sign;
      T* const other = a + static_cast<i64>(best.row) * n;
      for (int j = threadIdx.x; j < n; j += blockDim.x) {
        const T kept = upper[j];
        upper[j] = other[j];
        other[j] = kept;
      }
      if (threadIdx.x == 0) {
        const I kept = order[k];
        order[k] = order[best.row];
        order[best.row] = kept;
      }
    }
    __syncthreads();
    for (int i = k + 1 + warp_id(); i < n; i += warps()) {
      T* const row = a + static_cast<i64>(i) * n;
      const T factor = row[k] / upper[k];
      for (int j = k + 1 + lane_id(); j < n; j += 32) row[j] -= factor * upper[j];
      __syncwarp();
      if (lane_id() == 0) row[k] = factor;
    }
    __syncthreads();
  }
  return sign;
}

// The lower root of a Hermitian matrix in place, of whose lower triangle alone is read. False where it is not positive definite.
template <class T> GD_DEVICE bool take_root(T* a, int n) {
  for (int k = 0; k < n; ++k) {
    const part_t<T> square = real_part(a[static_cast<i64>(k) * n + k]);
    __syncthreads();
    if (!(square > part_t<T>(0))) return false;
    const part_t<T> root = ::sqrt(square);
    for (int i = k + threadIdx.x; i < n; i += blockDim.x) {
      T* const at = a + static_cast<i64>(i) * n + k;
      *at = i == k ? of_part<T>(root) : *at / of_part<T>(root);
    }
    __syncthreads();
    for (int i = k + 1 + warp_id(); i < n; i += warps()) {
      T* const row = a + static_cast<i64>(i) * n;
      for (int j = k + 1 + lane_id(); j <= i; j += 32) row[j] -= row[k] * conjugated(a[static_cast<i64>(j) * n + k]);
    }
    __syncthreads();
  }
  return true;
}

// A matrix, or its adjoint, as read by substitution.
template <class T> struct entries {
  const T* at;
  int n;
  bool adjoint;
  GD_DEVICE T operator()(int i, int j) const {
    return adjoint ? conjugated(at[static_cast<i64>(j) * n + i]) : at[static_cast<i64>(i) * n + j];
  }
};

// Solutions of triangular systems in place. Right-hand sides y, of width columns, of which this lane has number column (or
// none); warps share the rows.
template <class T> GD_DEVICE void substitute(entries<T> a, bool lower, bool unit, T* y, i64 width, i64 column) {
  const bool mine = column < width;
  for (int step = 0; step < a.n; ++step) {
    const int k = lower ? step : a.n - 1 - step;
    T value = T{};
    if (mine) {
      value = y[k * width + column];
      if (!unit) value = value / a(k, k);
      const int first = lower ? k + 1 : 0, last = lower ? a.n : k;
      for (int i = first + warp_id(); i < last; i += warps()) y[i * width + column] -= a(i, k) * value;
    }
    __syncthreads();
    if (mine && warp_id() == 0) y[k * width + column] = value;
  }
  __syncthreads();
}

}  // namespace gd
