// Eigenvalues of Hermitian matrices: reflections make them tridiagonal, then implicit QL or QR iterations diagonal, as LAPACK's
// dsteqr has them. After complex.cuh, block.cuh, matrix.cuh and reflections.cuh; ELEMENT is the matrices' type.
//
// One thread goes through an iteration, which leaves a chain of rotations; all threads then turn the vectors by it.

namespace gd {

template <class P> GD_DEVICE void eigen_2x2(P a, P b, P c, P& larger, P& smaller, P& cosine, P& sine) {
  const P sum = a + c, apart = a - c, size = fabs(apart), twice = b + b, off = fabs(twice);
  const P most = fabs(a) > fabs(c) ? a : c, least = fabs(a) > fabs(c) ? c : a;
  const P root = hypot(size, off);
  int sign = 1;
  if (sum < P(0)) {
    larger = P(0.5) * (sum - root), sign = -1;
    smaller = most / larger * least - b / larger * b;
  } else if (sum > P(0)) {
    larger = P(0.5) * (sum + root);
    smaller = most / larger * least - b / larger * b;
  } else {
    larger = P(0.5) * root, smaller = P(-0.5) * root;
  }
  const int other = apart >= P(0) ? 1 : -1;
  const P cs = apart + other * root;
  if (fabs(cs) > off) {
    const P ratio = -twice / cs;
    sine = P(1) / ::sqrt(P(1) + ratio * ratio), cosine = ratio * sine;
  } else if (off == P(0)) {
    cosine = P(1), sine = P(0);
  } else {
    const P ratio = -cs / twice;
    cosine = P(1) / ::sqrt(P(1) + ratio * ratio), sine = ratio * cosine;
  }
  if (sign == other) {
    const P kept = cosine;
    cosine = -sine, sine = kept;
  }
}

// A tridiagonal matrix on its way: diagonal d, e beside it. One thread has it.
template <class P> struct tridiagonal {
  P *d, *e, *cosines, *sines;
  int n;
  int next = 0, l = 0, end = -1, left;  // a block that is worked on goes from l to end, either way
  bool working = false, failed = false;
  // the chain that the last step made
  int first = 0, count = 0;
  bool backward = false;

  GD_DEVICE tridiagonal(P* d, P* e, P* cosines, P* sines, int n) : d(d), e(e), cosines(cosines), sines(sines), n(n), left(30 * n) {}

  // Find the next block. False where all is done.
  GD_DEVICE bool begin_block() {
    const P eps = limits<P>::epsilon() / 2;
    while (next < n) {
      if (next > 0) e[next - 1] = P(0);
      int m = next;
      for (; m < n - 1; ++m) {
        const P size = fabs(e[m]);
        if (size == P(0)) break;
        if (size <= ::sqrt(fabs(d[m])) * ::sqrt(fabs(d[m + 1])) * eps) {
          e[m] = P(0);
          break;
        }
      }
      l = next, end = m, next = m + 1;
      if (l == end) continue;
      if (fabs(d[end]) < fabs(d[l])) {
        const int kept = l;
        l = end, end = kept;
      }
      return working = true;
    }
    return false;
  }

  // Whether the element between i and i + 1 is as good as zero.
  GD_DEVICE bool small(int i) const {
    const P eps = limits<P>::epsilon() / 2;
    return e[i] * e[i] <= eps * eps * fabs(d[i]) * fabs(d[i + 1]) + (sizeof(P) == 4 ? P(1.1754944e-38) : P(2.2250738585072014e-308));
  }

  // Work until there is a chain to turn vectors by. False where there is none any more.
  GD_DEVICE bool step() {
    for (;;) {
      if (!working && !begin_block()) return false;
      const bool forth = end > l;  // QL, from l on; else QR, from l down
      const int way = forth ? 1 : -1;
      if (forth ? l > end : l < end) {
        working = false;
        continue;
      }
      int m = l;
      while (m != end && !small(forth ? m : m - 1)) m += way;
      if (m != end) e[forth ? m : m - 1] = P(0);
      if (m == l) {
        l += way;
        if (forth ? l > end : l < end) working = false;
        if (l == end) working = false;
        continue;
      }
      if (m == l + way) {
        const int low = forth ? l : m;
        P larger, smaller;
        eigen_2x2(d[low], e[low], d[low + 1], larger, smaller, cosines[0], sines[0]);
        d[low] = larger, d[low + 1] = smaller, e[low] = P(0);
        first = low, count = 1, backward = forth;
        l += 2 * way;
        if (forth ? l >= end : l <= end) working = false;
        return true;
      }
      if (left-- == 0) {
        failed = true;
        return false;
      }
      chase(m, forth);
      return true;
    }
  }

  GD_DEVICE void chase(int m, bool forth) {
    // for QL e[i] lies beside d[i], for QR e[i - 1] does
    const int low = forth ? l : m, high = forth ? m : l, way = forth ? 1 : -1;
    const P off = forth ? e[l] : e[l - 1], start = d[l];
    P g = (d[l + way] - start) / (P(2) * off);
    const P length = hypot(g, P(1));
    g = d[m] - start + off / (g + ::copysign(length, g));
    P s = P(1), c = P(1), p = P(0), r;
    first = low, count = high - low, backward = forth;
    if (forth) {
      for (int i = high - 1; i >= low; --i) {
        const P f = s * e[i], b = c * e[i];
        make_rotation(g, f, c, s, r);
        if (i != high - 1) e[i + 1] = r;
        g = d[i + 1] - p;
        r = (d[i] - g) * s + P(2) * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        cosines[i - low] = c, sines[i - low] = -s;
      }
      d[l] -= p, e[l] = g;
    } else {
      for (int i = low; i < high; ++i) {
        const P f = s * e[i], b = c * e[i];
        make_rotation(g, f, c, s, r);
        if (i != low) e[i - 1] = r;
        g = d[i] - p;
        r = (d[i + 1] - g) * s + P(2) * c * b;
        p = s * r;
        d[i] = g + p;
        g = c * r - b;
        cosines[i - low] = c, sines[i - low] = s;
      }
      d[l] -= p, e[l - 1] = g;
    }
  }
};

}  // namespace gd

// Values in ascending order, and vectors. Per block it works on a and its vectors (n by n each), n factors, and four lists of n
// real numbers, which begin at a multiple of ELEMENT.
GD_KERNEL(self_adjoint_eig)(const ELEMENT* input, ELEMENT* values, ELEMENT* vectors, ELEMENT* buffer, i64 each, int n, int wants_vectors, i64* words, i64 code) {
  typedef part_t<ELEMENT> P;
  const i64 size = static_cast<i64>(n) * n, matrix = blockIdx.x;
  ELEMENT* const a = workspace(buffer, each);
  ELEMENT* const z = a + size;
  ELEMENT* const tau = wants_vectors ? z + size : z;
  P* const d = reinterpret_cast<P*>(tau + n);
  P *const e = d + n, *const cosines = e + n, *const sines = cosines + n;
  const ELEMENT* const from = input + matrix * size;
  for (int i = warp_id(); i < n; i += warps())
    for (int j = lane_id(); j <= i; j += 32) {
      const ELEMENT value = from[static_cast<i64>(i) * n + j];
      a[static_cast<i64>(j) * n + i] = i == j ? of_part<ELEMENT>(real_part(value)) : value;
      if (i != j) a[static_cast<i64>(i) * n + j] = conjugated(value);
    }
  __syncthreads();
  for (int k = 0; k < n - 1; ++k) {
    ELEMENT* const x = a + static_cast<i64>(k) * n + k + 1;
    ELEMENT* const rest = x + n;
    const ELEMENT own = make_reflection(x, 1, n - k - 1);
    if (threadIdx.x == 0) {
      tau[k] = own;
      e[k] = real_part(x[0]);
    }
    reflect_left(rest, n, n - k - 1, n - k - 1, x, 1, conjugated(own));
    reflect_right(rest, n, n - k - 1, n - k - 1, x, 1, own);
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x) d[i] = real_part(a[static_cast<i64>(i) * n + i]);
  __syncthreads();
  if (wants_vectors) {
    set_identity(z, n, n, n);
    apply_reflections(a, n, n, n - 1, tau, z, n, n, 1);
  }
  __shared__ int first, count, backward, failed;
  tridiagonal<P> work(d, e, cosines, sines, n);
  do {
    if (threadIdx.x == 0) {
      bool more = work.step();
      while (more && !wants_vectors) more = work.step();
      first = work.first, count = more ? work.count : 0, backward = work.backward, failed = work.failed;
    }
    __syncthreads();
    if (count > 0) rotate_columns(z, n, n, first, count, backward, cosines, sines);
    const bool more = count > 0;
    __syncthreads();
    if (!more) break;
  } while (true);
  if (failed) {
    if (threadIdx.x == 0) refuse(words, code, matrix);
    return;
  }
  for (int j = warp_id(); j < n; j += warps()) {
    int before = 0;
    for (int i = lane_id(); i < n; i += 32) before += d[i] < d[j] || (d[i] == d[j] && i < j);
    before = warp_reduce_all(before, sum_op());
    if (lane_id() == 0) values[matrix * n + before] = of_part<ELEMENT>(d[j]);
    if (wants_vectors)
      for (int i = lane_id(); i < n; i += 32) vectors[matrix * size + static_cast<i64>(i) * n + before] = z[static_cast<i64>(j) * n + i];
  }
}
