// Roots and logarithms of matrices by Schur decompositions, in complex128. After complex.cuh, block.cuh, matrix.cuh and
// reflections.cuh; ELEMENT is the matrices' type. Matrices lie by columns: element (i, j) at j * n + i.

namespace gd {

typedef complex128 Z;

// [c s; -conj(s) c] turns (a, b) into (r, 0).
GD_DEVICE void make_turn(Z a, Z b, double& c, Z& s) {
  const double size_a = abs(a), size_b = abs(b), length = hypot(size_a, size_b);
  if (size_b == 0) {
    c = 1, s = Z{0, 0};
  } else if (size_a == 0) {
    c = 0, s = conj(b) * (1 / size_b);
  } else {
    c = size_a / length, s = a * (1 / size_a) * (conj(b) * (1 / length));
  }
}

// The eigenvalue of [a b; c d] next to d.
GD_DEVICE Z nearest_value(Z a, Z b, Z c, Z d) {
  const Z half = (a - d) * 0.5, root = sqrt(half * half + b * c);
  const Z sum = half + root, difference = half - root;
  // d + half -+ root, by the one that does not cancel
  const Z larger = abs_squared(sum) > abs_squared(difference) ? sum : difference;
  return abs_squared(larger) == 0 ? d : d - b * c / larger;
}

// q t q^H = t: upper triangular t in place, and unitary q. cosines and sines: room for n each. False where it does not converge.
GD_DEVICE bool schur(Z* t, Z* q, int n, double* cosines, Z* sines, Z* tau) {
  for (int k = 0; k < n - 2; ++k) {
    Z* const x = t + static_cast<i64>(k) * n + k + 1;
    const Z own = make_reflection(x, 1, n - k - 1);
    if (threadIdx.x == 0) tau[k] = own;
    reflect_left(x + n, n, n - k - 1, n - k - 1, x, 1, conj(own));
    reflect_right(t + static_cast<i64>(k + 1) * n, n, n, n - k - 1, x, 1, own);
  }
  set_identity(q, n, n, n);
  apply_reflections(t, n, n, n - 2, tau, q, n, n, 1);
  for (int j = threadIdx.x; j < n; j += blockDim.x)
    for (int i = j + 2; i < n; ++i) t[static_cast<i64>(j) * n + i] = Z{0, 0};
  __syncthreads();
  __shared__ int low;
  __shared__ Z shift;
  int high = n - 1, since = 0;
  for (int round = 0; high > 0; ++round) {
    if (round > 40 * n) return false;
    if (threadIdx.x == 0) {
      low = high;
      for (; low > 0; --low) {
        Z* const beside = t + static_cast<i64>(low - 1) * n + low;
        const double scale = abs(beside[-1]) + abs(beside[n]);
        if (abs(*beside) <= limits<double>::epsilon() / 2 * scale) {
          *beside = Z{0, 0};
          break;
        }
      }
      Z* const corner = t + static_cast<i64>(high) * n + high;
      if (low < high) {
        shift = nearest_value(corner[-n - 1], corner[-1], corner[-n], corner[0]);
        if (since % 10 == 9) shift = corner[0] + Z{abs(corner[-n]), 0};  // a change, where it goes round in circles
      }
    }
    __syncthreads();
    const int from = low;
    const Z moved = shift;
    if (from == high) {
      --high, since = 0;
      __syncthreads();
      continue;
    }
    ++since;
    for (int i = from + threadIdx.x; i <= high; i += blockDim.x) t[static_cast<i64>(i) * n + i] -= moved;
    __syncthreads();
    for (int k = from; k < high; ++k) {
      if (threadIdx.x == 0) make_turn(t[static_cast<i64>(k) * n + k], t[static_cast<i64>(k) * n + k + 1], cosines[k], sines[k]);
      __syncthreads();
      const double c = cosines[k];
      const Z s = sines[k];
      for (int j = k + threadIdx.x; j < n; j += blockDim.x) {
        Z* const at = t + static_cast<i64>(j) * n + k;
        const Z a = at[0], b = at[1];
        at[0] = a * c + s * b, at[1] = b * c - conj(s) * a;
      }
      __syncthreads();
    }
    for (int i = threadIdx.x; i < 2 * n; i += blockDim.x) {
      Z* const row = i < n ? t + i : q + i - n;
      for (int k = from; k < high; ++k) {
        if (i < n && i > k + 1) continue;
        Z* const at = row + static_cast<i64>(k) * n;
        const Z a = at[0], b = at[n];
        at[0] = a * cosines[k] + conj(sines[k]) * b, at[n] = b * cosines[k] - sines[k] * a;
      }
    }
    __syncthreads();
    for (int i = from + threadIdx.x; i <= high; i += blockDim.x) t[static_cast<i64>(i) * n + i] += moved;
    __syncthreads();
  }
  return true;
}

// The upper triangular root of one, a diagonal after the other (Björck and Hammarling, 1983).
GD_DEVICE void triangular_root(const Z* t, Z* root, int n) {
  for (int apart = 0; apart < n; ++apart) {
    for (int i = threadIdx.x; i < n - apart; i += blockDim.x) {
      const int j = i + apart;
      Z value = t[static_cast<i64>(j) * n + i];
      if (apart == 0) {
        value = sqrt(value);
      } else {
        for (int k = i + 1; k < j; ++k) value -= root[static_cast<i64>(k) * n + i] * root[static_cast<i64>(j) * n + k];
        const Z both = root[static_cast<i64>(i) * n + i] + root[static_cast<i64>(j) * n + j];
        value = is_zero(both) ? Z{0, 0} : value / both;
      }
      root[static_cast<i64>(j) * n + i] = value;
    }
    __syncthreads();
  }
}

// The largest sum of sizes of a column of t - 1.
GD_DEVICE double distance_from_one(const Z* t, int n) {
  double most = 0;
  for (int j = threadIdx.x; j < n; j += blockDim.x) {
    double total = 0;
    for (int i = 0; i <= j; ++i) total += abs(t[static_cast<i64>(j) * n + i] - Z{i == j ? 1.0 : 0.0, 0});
    most = maximum(most, total);
  }
  return block_reduce(most, max_op());
}

// total = log t, of an upper triangular t near 1, by Gauss and Legendre's sum of (1 + x (t - 1))^-1 (t - 1); x: room for it.
GD_DEVICE void near_logarithm(const Z* t, Z* total, Z* x, int n) {
  const double nodes[4] = {0.1834346424956498049, 0.5255324099163289858, 0.7966664774136267396, 0.9602898564975362317};
  const double weights[4] = {0.3626837833783619830, 0.3137066458778872873, 0.2223810344533744705, 0.1012285362903762591};
  for (int j = threadIdx.x; j < n; j += blockDim.x) {
    Z* const column = x + static_cast<i64>(j) * n;
    for (int i = 0; i < n; ++i) total[static_cast<i64>(j) * n + i] = Z{0, 0};
    for (int term = 0; term < 8; ++term) {
      const double at = 0.5 + (term % 2 ? 0.5 : -0.5) * nodes[term / 2];
      for (int i = j; i >= 0; --i) {
        const Z one{i == j ? 1.0 : 0.0, 0};
        Z value = t[static_cast<i64>(j) * n + i] - one;
        for (int k = i + 1; k <= j; ++k) value -= t[static_cast<i64>(k) * n + i] * at * column[k];
        column[i] = value / (Z{1 - at, 0} + t[static_cast<i64>(i) * n + i] * at);
      }
      for (int i = 0; i <= j; ++i) total[static_cast<i64>(j) * n + i] += column[i] * (0.5 * weights[term / 2]);
    }
  }
  __syncthreads();
}

GD_DEVICE void write_part(float* to, Z value) { *to = static_cast<float>(value.re); }
GD_DEVICE void write_part(double* to, Z value) { *to = value.re; }
template <class C> GD_DEVICE void write_part(complex_t<C>* to, Z value) { *to = from_compute<complex_t<C>>(value); }

// y = scale q f q^H, of an upper triangular f; x: room for q f.
GD_DEVICE void turned_back(const Z* q, const Z* f, Z* x, ELEMENT* y, int n, double scale) {
  const int size = n * n;
  for (int flat = threadIdx.x; flat < size; flat += blockDim.x) {
    const int i = flat % n, j = flat / n;
    Z total{0, 0};
    for (int k = 0; k <= j; ++k) total += q[static_cast<i64>(k) * n + i] * f[static_cast<i64>(j) * n + k];
    x[flat] = total;
  }
  __syncthreads();
  for (int flat = threadIdx.x; flat < size; flat += blockDim.x) {
    const int i = flat / n, j = flat % n;
    Z total{0, 0};
    for (int k = 0; k < n; ++k) total += x[static_cast<i64>(k) * n + i] * conj(q[static_cast<i64>(k) * n + j]);
    write_part(y + flat, total * scale);
  }
}

}  // namespace gd

// Per block it works on t, q, a root and, for logarithms, two more (n by n each), and 3 n numbers beside.
GD_KERNEL(matrix_function)(const ELEMENT* input, ELEMENT* y, Z* buffer, i64 each, int n, int logarithm, i64* words, i64 code) {
  const i64 size = static_cast<i64>(n) * n, matrix = blockIdx.x;
  Z* t = workspace(buffer, each);
  Z* const q = t + size;
  Z* root = q + size;
  Z* const room = root + size;
  Z* const lists = room + (logarithm ? 2 * size : 0);
  for (int i = warp_id(); i < n; i += warps())
    for (int j = lane_id(); j < n; j += 32) t[static_cast<i64>(j) * n + i] = from_compute<Z>(input[matrix * size + static_cast<i64>(i) * n + j]);
  __syncthreads();
  bool good = schur(t, q, n, reinterpret_cast<double*>(lists), lists + n, lists + 2 * n);
  double scale = 1;
  if (good && logarithm) {
    int count = 0;
    while (count < 100 && !(distance_from_one(t, n) <= 0.25)) {
      triangular_root(t, root, n);
      Z* const kept = t;
      t = root, root = kept;
      scale *= 2, ++count;
    }
    good = count < 100;
  }
  if (!good) {
    if (threadIdx.x == 0) refuse(words, code, matrix);
    return;
  }
  if (logarithm) near_logarithm(t, room, room + size, n);
  else triangular_root(t, root, n);
  turned_back(q, logarithm ? room : root, logarithm ? root : t, y + matrix * size, n, scale);
}
