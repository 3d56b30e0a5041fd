// Singular values of bidiagonal matrices by implicit QR iterations, as LAPACK's dbdsqr has them. After reflections.cuh.
//
// One thread goes through an iteration, which leaves two chains of rotations; all threads then turn both sets of vectors by them.

namespace gd {

template <class P> GD_DEVICE P signed_as(P size, P sign) { return ::copysign(size, sign); }

// Singular values of [f g; 0 h] and the rotations that make it diagonal.
template <class P> GD_DEVICE void singular_2x2(P f, P g, P h, P& smaller, P& larger, P& sin_right, P& cos_right, P& sin_left, P& cos_left) {
  const P eps = limits<P>::epsilon() / 2;
  P ft = f, fa = fabs(f), ht = h, ha = fabs(h);
  const bool swapped = ha > fa;
  if (swapped) {
    P kept = ft;
    ft = ht, ht = kept;
    kept = fa, fa = ha, ha = kept;
  }
  int most = swapped ? 3 : 1;
  const P gt = g, ga = fabs(g);
  P cl, cr, sl, sr;
  if (ga == P(0)) {
    smaller = ha, larger = fa, cl = P(1), cr = P(1), sl = P(0), sr = P(0);
  } else if (ga > fa && fa / ga < eps) {
    most = 2;
    larger = ga;
    smaller = ha > P(1) ? fa / (ga / ha) : fa / ga * ha;
    cl = P(1), sl = ht / gt, sr = P(1), cr = ft / gt;
  } else {
    if (ga > fa) most = 2;
    const P apart = fa - ha, m = gt / ft, mm = m * m;
    P l = apart == fa ? P(1) : apart / fa, t = P(2) - l;
    const P s = ::sqrt(t * t + mm), r = l == P(0) ? fabs(m) : ::sqrt(l * l + mm), a = P(0.5) * (s + r);
    smaller = ha / a, larger = fa * a;
    if (mm == P(0)) t = l == P(0) ? signed_as(P(2), ft) * signed_as(P(1), gt) : gt / signed_as(apart, ft) + m / t;
    else t = (m / (s + t) + m / (r + l)) * (P(1) + a);
    l = ::sqrt(t * t + P(4));
    cr = P(2) / l, sr = t / l;
    cl = (cr + sr * m) / a, sl = ht / ft * sr / a;
  }
  cos_left = swapped ? sr : cl, sin_left = swapped ? cr : sl;
  cos_right = swapped ? sl : cr, sin_right = swapped ? cl : sr;
  P sign = P(1);
  if (most == 1) sign = signed_as(P(1), cos_right) * signed_as(P(1), cos_left) * signed_as(P(1), f);
  if (most == 2) sign = signed_as(P(1), sin_right) * signed_as(P(1), cos_left) * signed_as(P(1), g);
  if (most == 3) sign = signed_as(P(1), sin_right) * signed_as(P(1), sin_left) * signed_as(P(1), h);
  larger = signed_as(larger, sign);
  smaller = signed_as(smaller, sign * signed_as(P(1), f) * signed_as(P(1), h));
}

// The smaller singular value of [f g; 0 h].
template <class P> GD_DEVICE P least_2x2(P f, P g, P h) {
  const P fa = fabs(f), ga = fabs(g), ha = fabs(h), low = fa < ha ? fa : ha, high = fa < ha ? ha : fa;
  if (low == P(0)) return P(0);
  const P sum = P(1) + low / high, apart = (high - low) / high;
  if (ga < high) {
    const P u = ga / high * (ga / high);
    return low * (P(2) / (::sqrt(sum * sum + u) + ::sqrt(apart * apart + u)));
  }
  const P u = high / ga;
  if (u == P(0)) return low * high / ga;
  const P c = P(1) / (::sqrt(P(1) + sum * u * (sum * u)) + ::sqrt(P(1) + apart * u * (apart * u)));
  return P(2) * (low * c) * u;
}

// An upper bidiagonal matrix on its way: diagonal d, e above it. One thread has it. Chains: of right vectors, then of left ones.
template <class P> struct bidiagonal {
  P *d, *e, *right_c, *right_s, *left_c, *left_s;
  int n, m, low = -1, old_low = -2, old_m = -2;
  bool down = true, failed = false;
  i64 left;
  P tolerance, threshold;
  // the chains that the last step made
  int first = 0, count = 0;
  bool backward = false;

  GD_DEVICE bidiagonal(P* d, P* e, P* lists, int n)
      : d(d), e(e), right_c(lists), right_s(lists + n), left_c(lists + 2 * n), left_s(lists + 3 * n), n(n), m(n - 1), left(6ll * n * n + 12) {}

  GD_DEVICE void begin() {
    const P eps = limits<P>::epsilon() / 2, tiny = sizeof(P) == 4 ? P(1.1754944e-38) : P(2.2250738585072014e-308);
    const P factor = ::pow(eps, P(-0.125));
    tolerance = (factor < P(10) ? P(10) : factor > P(100) ? P(100) : factor) * eps;
    P mu = fabs(d[0]), least = mu;
    for (int i = 1; i < n && least != P(0); ++i) {
      mu = fabs(d[i]) * (mu / (mu + fabs(e[i - 1])));
      least = mu < least ? mu : least;
    }
    least = least / ::sqrt(P(n));
    const P floor = P(6) * P(n) * (P(n) * tiny);
    threshold = tolerance * least > floor ? tolerance * least : floor;
  }

  // Work until there are chains to turn vectors by. False where there are none any more.
  GD_DEVICE bool step() {
    while (m > 0) {
      if (left < 0) {
        failed = true;
        return false;
      }
      P most = fabs(d[m]);
      low = m - 1;
      for (; low >= 0; --low) {
        const P own = fabs(d[low]), off = fabs(e[low]);
        if (off <= threshold) break;
        most = own > most ? own : most;
        most = off > most ? off : most;
      }
      if (low >= 0) {
        e[low] = P(0);
        if (low == m - 1) {
          --m;
          continue;
        }
      }
      ++low;
      if (low == m - 1) {
        P larger, smaller;
        singular_2x2(d[m - 1], e[m - 1], d[m], smaller, larger, right_s[0], right_c[0], left_s[0], left_c[0]);
        d[m - 1] = larger, e[m - 1] = P(0), d[m] = smaller;
        first = m - 1, count = 1, backward = false;
        m -= 2;
        return true;
      }
      if (low > old_m || m < old_low) down = fabs(d[low]) >= fabs(d[m]);
      P least;
      if (negligible(least)) continue;
      old_low = low, old_m = m;
      iterate(least, most);
      return true;
    }
    return false;
  }

  // Set an element beside the diagonal that is as good as zero; else give a bound of the least singular value.
  GD_DEVICE bool negligible(P& least) {
    const int near = down ? m - 1 : low;
    if (fabs(e[near]) <= tolerance * fabs(d[down ? m : low])) {
      e[near] = P(0);
      return true;
    }
    P mu = fabs(d[down ? low : m]);
    least = mu;
    for (int step = low; step < m; ++step) {
      const int i = down ? step : m - 1 - (step - low);
      if (fabs(e[i]) <= tolerance * mu) {
        e[i] = P(0);
        return true;
      }
      mu = fabs(d[down ? i + 1 : i]) * (mu / (mu + fabs(e[i])));
      least = mu < least ? mu : least;
    }
    return false;
  }

  GD_DEVICE void iterate(P least, P most) {
    const P eps = limits<P>::epsilon() / 2;
    const P bound = eps > P(0.01) * tolerance ? eps : P(0.01) * tolerance;
    P shift = P(0);
    if (!(P(n) * tolerance * (least / most) <= bound)) {
      const P size = fabs(d[down ? low : m]);
      shift = down ? least_2x2(d[m - 1], e[m - 1], d[m]) : least_2x2(d[low], e[low], d[low + 1]);
      if (size > P(0) && shift / size * (shift / size) < eps) shift = P(0);
    }
    left -= m - low;
    first = low, count = m - low, backward = !down;
    if (shift == P(0)) down ? plain_down() : plain_up();
    else down ? shifted_down(shift) : shifted_up(shift);
    const int near = down ? m - 1 : low;
    if (fabs(e[near]) <= threshold) e[near] = P(0);
  }

  GD_DEVICE void plain_down() {
    P c = P(1), s, old_c = P(1), old_s = P(0), r;
    for (int i = low; i < m; ++i) {
      make_rotation(d[i] * c, e[i], c, s, r);
      if (i > low) e[i - 1] = old_s * r;
      make_rotation(old_c * r, d[i + 1] * s, old_c, old_s, d[i]);
      const int at = i - low;
      right_c[at] = c, right_s[at] = s, left_c[at] = old_c, left_s[at] = old_s;
    }
    const P h = d[m] * c;
    d[m] = h * old_c, e[m - 1] = h * old_s;
  }

  GD_DEVICE void plain_up() {
    P c = P(1), s, old_c = P(1), old_s = P(0), r;
    for (int i = m; i > low; --i) {
      make_rotation(d[i] * c, e[i - 1], c, s, r);
      if (i < m) e[i] = old_s * r;
      make_rotation(old_c * r, d[i - 1] * s, old_c, old_s, d[i]);
      const int at = i - low - 1;
      left_c[at] = c, left_s[at] = -s, right_c[at] = old_c, right_s[at] = -old_s;
    }
    const P h = d[low] * c;
    d[low] = h * old_c, e[low] = h * old_s;
  }

  GD_DEVICE void shifted_down(P shift) {
    P f = (fabs(d[low]) - shift) * (signed_as(P(1), d[low]) + shift / d[low]), g = e[low], cr, sr, cl, sl, r;
    for (int i = low; i < m; ++i) {
      make_rotation(f, g, cr, sr, r);
      if (i > low) e[i - 1] = r;
      f = cr * d[i] + sr * e[i];
      e[i] = cr * e[i] - sr * d[i];
      g = sr * d[i + 1];
      d[i + 1] = cr * d[i + 1];
      make_rotation(f, g, cl, sl, r);
      d[i] = r;
      f = cl * e[i] + sl * d[i + 1];
      d[i + 1] = cl * d[i + 1] - sl * e[i];
      if (i < m - 1) {
        g = sl * e[i + 1];
        e[i + 1] = cl * e[i + 1];
      }
      const int at = i - low;
      right_c[at] = cr, right_s[at] = sr, left_c[at] = cl, left_s[at] = sl;
    }
    e[m - 1] = f;
  }

  GD_DEVICE void shifted_up(P shift) {
    P f = (fabs(d[m]) - shift) * (signed_as(P(1), d[m]) + shift / d[m]), g = e[m - 1], cr, sr, cl, sl, r;
    for (int i = m; i > low; --i) {
      make_rotation(f, g, cr, sr, r);
      if (i < m) e[i] = r;
      f = cr * d[i] + sr * e[i - 1];
      e[i - 1] = cr * e[i - 1] - sr * d[i];
      g = sr * d[i - 1];
      d[i - 1] = cr * d[i - 1];
      make_rotation(f, g, cl, sl, r);
      d[i] = r;
      f = cl * e[i - 1] + sl * d[i - 1];
      d[i - 1] = cl * d[i - 1] - sl * e[i - 1];
      if (i > low + 1) {
        g = sl * e[i - 2];
        e[i - 2] = cl * e[i - 2];
      }
      const int at = i - low - 1;
      left_c[at] = cr, left_s[at] = -sr, right_c[at] = cl, right_s[at] = -sl;
    }
    e[low] = f;
  }
};

}  // namespace gd
