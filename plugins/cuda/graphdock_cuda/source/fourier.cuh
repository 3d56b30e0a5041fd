// Fourier transforms along one axis. After complex.cuh; IN, OUT and WORK are the types read, written and computed in.
//
// Lines of a tensor are transformed in shared memory, by Stockham's passes of any radix, which sort themselves. A line that does
// not fit is a matrix of two shorter ones (the four steps of Bailey); one whose length has a large prime factor is a convolution
// of chirps (Bluestein). graphdock_cuda/kernels/spectral.py plans all of that.

// One launch. A line has n numbers of whole, of which it begins at number (s / sub), in_mul apart; s is its place within inner.
struct Lines {
  i64 lines, inner, sub;                         // of lines; numbers beside one another that belong to different ones
  i64 in_mul, in_outer, in_step, given, whole;   // given: as many numbers are there, zeros follow
  i64 split, out_outer, out_step, kept, twist;   // kept: as many are written; twist: turn by powers of e^(-2 pi i / twist)
  double scale;
  int n, per_block, hermitian, inverse, passes;
  int radix[27];
};

namespace gd {

template <class T> struct real_of { typedef T type; };
template <class P> struct real_of<complex_t<P>> { typedef P type; };
typedef real_of<WORK>::type P;

// e^(-2 pi i j / n), as exact as a double's sine.
GD_DEVICE WORK root_of_unity(i64 j, i64 n) {
  double s, c;
  sincos(-6.283185307179586476925 * (static_cast<double>(j) / static_cast<double>(n)), &s, &c);
  return WORK{static_cast<P>(c), static_cast<P>(s)};
}

GD_DEVICE WORK as_work(float x) { return WORK{static_cast<P>(x), P(0)}; }
GD_DEVICE WORK as_work(double x) { return WORK{static_cast<P>(x), P(0)}; }
template <class C> GD_DEVICE WORK as_work(complex_t<C> x) { return from_compute<WORK>(x); }

// Number `at` of a line that begins at from, filled up with zeros, or with conjugates that follow from the first half.
GD_DEVICE WORK number_at(const IN* from, const Lines& p, i64 at) {
  if (!p.hermitian) return at < p.given ? as_work(from[at * p.in_step]) : WORK{};
  const bool mirrored = 2 * at > p.whole;
  const i64 own = mirrored ? p.whole - at : at;
  WORK value = own < p.given ? as_work(from[own * p.in_step]) : WORK{};
  if (own == 0 || 2 * own == p.whole) value.im = P(0);
  return mirrored ? conj(value) : value;
}

template <class C> GD_DEVICE void write_number(complex_t<C>* to, WORK value) { *to = from_compute<complex_t<C>>(value); }
GD_DEVICE void write_number(float* to, WORK value) { *to = static_cast<float>(value.re); }
GD_DEVICE void write_number(double* to, WORK value) { *to = static_cast<double>(value.re); }

GD_DEVICE void turn_2(WORK* v) {
  const WORK a = v[0];
  v[0] = a + v[1];
  v[1] = a - v[1];
}
GD_DEVICE void turn_4(WORK* v, bool inverse) {
  const WORK a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = v[1] - v[3];
  const WORK e = inverse ? WORK{-d.im, d.re} : WORK{d.im, -d.re};
  v[0] = a + c, v[1] = b + e, v[2] = a - c, v[3] = b - e;
}

// One pass over a line: x to y. before: the product of the radices of earlier passes; table: powers of the n-th root.
template <int R> GD_DEVICE void pass_of(const WORK* x, WORK* y, const WORK* table, int n, int before, int i, bool inverse) {
  const int j = i % before, apart = n / R, stride = n / (before * R);
  WORK v[R];
#pragma unroll
  for (int q = 0; q < R; ++q) {
    v[q] = x[i + q * apart];
    if (q > 0 && j > 0) {
      const WORK w = table[q * j * stride];
      v[q] = v[q] * (inverse ? conj(w) : w);
    }
  }
  if (R == 2) turn_2(v);
  else turn_4(v, inverse);
  const int to = (i - j) * R + j;
#pragma unroll
  for (int q = 0; q < R; ++q) y[to + q * before] = v[q];
}
GD_DEVICE void pass_of_any(const WORK* x, WORK* y, const WORK* table, int n, int before, int i, int radix, bool inverse) {
  const int j = i % before, apart = n / radix, stride = n / (before * radix), to = (i - j) * radix + j;
  for (int q = 0; q < radix; ++q) {
    WORK total = x[i];
    const int step = (j * stride + q * apart) % n;
    int at = 0;
    for (int k = 1; k < radix; ++k) {
      at += step;
      if (at >= n) at -= n;
      const WORK w = table[at];
      total += x[i + k * apart] * (inverse ? conj(w) : w);
    }
    y[to + q * before] = total;
  }
}

}  // namespace gd

// Powers of the n-th root of 1.
GD_KERNEL(fourier_table)(WORK* table, i64 n) {
  GD_GRID_LOOP(i64, j, n) table[j] = root_of_unity(j, n);
}

GD_KERNEL(fourier_lines)(const IN* in, OUT* out, const WORK* table, Lines p) {
  GD_DYNAMIC_SHARED(WORK, shared);
  const i64 first = static_cast<i64>(blockIdx.x) * p.per_block;
  const int count = p.lines - first < p.per_block ? static_cast<int>(p.lines - first) : p.per_block, n = p.n;
  WORK *x = shared, *y = shared + p.per_block * n;
  // neighbours in memory are read by neighbouring threads
  const bool across = p.inner > 1;
  for (int t = threadIdx.x; t < count * n; t += blockDim.x) {
    const int line = across ? t % count : t / n, at = across ? t / count : t % n;
    const i64 o = (first + line) / p.inner, s = (first + line) % p.inner;
    x[line * n + at] = number_at(in + o * p.in_outer + s % p.sub, p, at * p.in_mul + s / p.sub);
  }
  __syncthreads();
  int before = 1;
  for (int pass = 0; pass < p.passes; ++pass) {
    const int radix = p.radix[pass], items = n / radix;
    for (int t = threadIdx.x; t < count * items; t += blockDim.x) {
      const int line = t / items, i = t - line * items;
      const WORK* const from = x + line * n;
      WORK* const to = y + line * n;
      if (radix == 4) pass_of<4>(from, to, table, n, before, i, p.inverse);
      else if (radix == 2) pass_of<2>(from, to, table, n, before, i, p.inverse);
      else pass_of_any(from, to, table, n, before, i, radix, p.inverse);
    }
    __syncthreads();
    before *= radix;
    WORK* const kept = x;
    x = y, y = kept;
  }
  const P scale = static_cast<P>(p.scale);
  for (int t = threadIdx.x; t < count * n; t += blockDim.x) {
    const int line = across ? t % count : t / n, k = across ? t / count : t % n;
    const i64 o = (first + line) / p.inner, s = (first + line) % p.inner, at = o % p.split + p.split * k;
    if (at >= p.kept) continue;
    WORK value = x[line * n + k] * scale;
    if (p.twist != 0) {
      const WORK turn = root_of_unity(k * (s / p.sub), p.twist);
      value = value * (p.inverse ? conj(turn) : turn);
    }
    write_number(out + o / p.split * p.out_outer + at * p.out_step + s, value);
  }
}

// ---- any length, as a convolution of `size` numbers, a power of two

// e^(-pi i j^2 / n).
GD_DEVICE WORK chirp(i64 j, i64 n, bool inverse) {
  const u64 square = static_cast<u64>(j) * static_cast<u64>(j) % (2 * static_cast<u64>(n));
  const WORK w = root_of_unity(static_cast<i64>(square), 2 * n);
  return inverse ? conj(w) : w;
}
GD_KERNEL(chirp_filter)(WORK* filter, i64 n, i64 size, int inverse) {
  GD_GRID_LOOP(i64, j, size) filter[j] = j < n ? conj(chirp(j, n, inverse)) : size - j < n ? conj(chirp(size - j, n, inverse)) : WORK{};
}
GD_KERNEL(chirp_in)(const IN* in, WORK* y, i64 size, Lines p) {
  GD_GRID_LOOP(i64, flat, p.lines * size) {
    const i64 line = flat / size, at = flat - line * size, o = line / p.inner, s = line % p.inner;
    y[flat] = at < p.whole ? number_at(in + o * p.in_outer + s, p, at) * chirp(at, p.whole, p.inverse) : WORK{};
  }
}
GD_KERNEL(chirp_product)(WORK* y, const WORK* filter, i64 size, i64 count) {
  GD_GRID_LOOP(i64, flat, count) y[flat] = y[flat] * filter[flat % size];
}
GD_KERNEL(chirp_out)(const WORK* y, OUT* out, i64 size, Lines p) {
  GD_GRID_LOOP(i64, flat, p.lines * p.kept) {
    const i64 line = flat / p.kept, k = flat - line * p.kept, o = line / p.inner, s = line % p.inner;
    const WORK value = y[line * size + k] * chirp(k, p.whole, p.inverse) * static_cast<P>(p.scale);
    write_number(out + o * p.out_outer + k * p.out_step + s, value);
  }
}
