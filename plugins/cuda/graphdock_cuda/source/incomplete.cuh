// The incomplete gamma and beta functions in double. After gamma.cuh.
//
// NIST Digital Library of Mathematical Functions: the series 8.11.4 and the continued fraction 8.9.2 of the incomplete gamma functions,
// the continued fraction 8.17.22 of the incomplete beta function. Fractions are evaluated by W. J. Lentz's method (Applied Optics 15,
// 1976) as modified by I. J. Thompson and A. R. Barnett (Journal of Computational Physics 64, 1986). The derivative by a follows each
// step of the series or the fraction. From a = 1e5 on the uniform expansion 8.12.3 (N. M. Temme, SIAM Journal on Mathematical Analysis
// 10, 1979) stands for them.

constexpr double TINY = 1e-300, ENOUGH = 1e-16;
// Terms after which what has not converged is left as it is.
constexpr int TERMS = 20000;

// The first two coefficients of the expansion as series in eta, and the derivative of the first.
__device__ constexpr double FIRST[] = {
    3.919263178522438e-05, -0.0001787551440329218, 0.0003527336860670194, 0.0011574074074074073, -0.014814814814814815,
    0.08333333333333333, -0.3333333333333333};
__device__ constexpr double SLOPE[] = {
    0.00023515579071134627, -0.000893775720164609, 0.0014109347442680777, 0.003472222222222222, -0.02962962962962963,
    0.08333333333333333};
__device__ constexpr double SECOND[] = {
    0.00020576131687242798, -0.0009902263374485596, 0.0026455026455026454, -0.003472222222222222, -0.001851851851851852};
// eta^2 / mu^2 in powers of mu.
__device__ constexpr double ETA[] = {
    -0.18181818181818182, 0.2, -0.2222222222222222, 0.25, -0.2857142857142857, 0.3333333333333333, -0.4, 0.5,
    -0.6666666666666666, 1.0};

// x^a e^-x / gamma(a + 1); for large a from its distance to the peak, where the plain formula loses digits.
GD_DEVICE double gamma_prefix(double a, double x) {
  const double mu = (x - a) / a;
  if (a >= 8 && fabs(mu) < 0.5) return exp(a * (log1p(mu) - mu) - stirling_rest(a)) / sqrt(2 * PI * a);
  return exp(a * log(x) - x - log_gamma(a + 1));
}

struct GammaParts { double p, q, slope; };

// The sum of x^n / ((a+1) ... (a+n)) and its derivative by a.
GD_DEVICE void gamma_series(double a, double x, double& total, double& slope) {
  double term = 1, sums = 0, slopes = 0;
  total = 1;
  for (int n = 1; n < TERMS; ++n) {
    term = term * x / (a + n);
    sums += 1 / (a + n);
    const double change = term * sums;
    total += term;
    slopes += change;
    if ((term <= ENOUGH * total && change <= ENOUGH * slopes) || !(fabs(total) < limits<double>::infinity())) break;
  }
  slope = -slopes;
}

// gamma(a, x) / (x^a e^-x) and its derivative by a.
GD_DEVICE void gamma_fraction(double a, double x, double& total, double& slope) {
  double b = x + 1 - a;
  if (b == 0) b = TINY;
  double d = 1 / b, c = 1 / TINY, h = d, dc = 0, dd = d * d, dh = d * d;
  for (int n = 1; n < TERMS; ++n) {
    const double top = -n * (n - a);
    b += 2;
    const double bottom = top * d + b, by_a = n * d + top * dd - 1;
    dc = -1 + n / c - top * dc / (c * c);
    c = b + top / c;
    if (c == 0) c = TINY;
    d = 1 / (bottom == 0 ? TINY : bottom);
    dd = -by_a * d * d;
    const double factor = c * d, change = dc * d + c * dd;
    // the derivative of the new h, which is h times the factor
    dh = dh * factor + h * change;
    h *= factor;
    if ((fabs(factor - 1) < ENOUGH * 2 && fabs(change * h) <= ENOUGH * 4 * (fabs(dh) + fabs(h))) ||
        !(fabs(h) < limits<double>::infinity()))
      break;
  }
  total = h;
  slope = dh;
}

// For large a.
GD_DEVICE GammaParts gamma_uniform(double a, double x) {
  double mu = (x - a) / a;
  mu = mu < -0.9 ? -0.9 : mu > 10.0 ? 10.0 : mu;  // beyond, P is 0 or 1
  const double by_log = log1p(mu);
  const bool close = fabs(mu) < 0.02;
  const double ratio = close ? sqrt(polynomial(ETA, mu)) : sqrt(2 * (mu - by_log)) / fabs(mu);  // eta / mu
  const double eta = mu * ratio;
  const double first = close ? polynomial(FIRST, eta) : 1 / mu - 1 / eta;
  const double slope = polynomial(SLOPE, close ? eta : 0.0);
  const double second = polynomial(SECOND, close ? eta : 0.0);  // farther off the Gaussian is 0 beside it
  const double z = eta * sqrt(a / 2), gaussian = exp(-z * z) / sqrt(2 * PI * a);
  const double rest = gaussian * (first + second / a), by_eta = mu == 0 ? 1.0 : by_log / eta;
  const double change = -gaussian * (by_eta + by_log * first - first / (2 * a) - slope / (ratio * a));
  return {0.5 * erfc(-z) - rest, 0.5 * erfc(z) + rest, change};
}

// P(a, x), Q(a, x) and the derivative of P by a; a and x are positive and finite.
GD_DEVICE GammaParts gamma_parts(double a, double x) {
  if (a >= 1e5) return gamma_uniform(a, x);
  double total, change;
  if (x <= 1 || x <= a + 1) {
    gamma_series(a, x, total, change);
    const double factor = gamma_prefix(a, x), p = factor * total;
    return {p, 1 - p, p * (log(x) - digamma(a + 1)) + factor * change};
  }
  gamma_fraction(a, x, total, change);
  const double factor = gamma_prefix(a, x) * a, q = factor * total;
  return {1 - q, q, -(q * (log(x) - digamma(a)) + factor * change)};
}

// Where a or x is 0 or infinite: P there, which is known for some. WHICH: 0 for P, 1 for Q, 2 for the derivative.
template <int WHICH> GD_CALLED double incomplete_gamma(double a, double x) {
  const double infinity = limits<double>::infinity();
  if (a > 0 && x > 0 && a < infinity && x < infinity) {
    const GammaParts parts = gamma_parts(a, x);
    return WHICH == 0 ? parts.p : WHICH == 1 ? parts.q : parts.slope;
  }
  const bool known = (a > 0 && x == 0) || (a > 0 && x == infinity && a < infinity) ||
                     (a == infinity && x > 0 && x < infinity) || (a == 0 && x > 0);
  if (!known) return limits<double>::nan();
  const double value = x == 0 || a == infinity ? 0.0 : 1.0;
  return WHICH == 0 ? value : WHICH == 1 ? 1 - value : 0.0;
}

GD_DEVICE double not_tiny(double x) { return fabs(x) < TINY ? TINY : x; }

GD_DEVICE double beta_fraction(double a, double b, double x) {
  double c = 1, d = 1 / not_tiny(1 - (a + b) * x / (a + 1)), h = d;
  for (int n = 1; n < TERMS; ++n) {
    const double even = n * (b - n) * x / ((a + 2 * n - 1) * (a + 2 * n));
    const double odd = -(a + n) * (a + b + n) * x / ((a + 2 * n) * (a + 2 * n + 1));
    double factor = 1;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const double top = i == 0 ? even : odd;
      d = 1 / not_tiny(1 + top * d);
      c = not_tiny(1 + top / c);
      factor = c * d;
      h *= factor;
    }
    if (fabs(factor - 1) < ENOUGH * 3 || !(fabs(h) < limits<double>::infinity())) break;
  }
  return h;
}

// I_x(a, b), the regularised incomplete beta function, for positive a and b and x in [0, 1]; else NaN.
GD_CALLED double betainc(double a, double b, double x) {
  const double infinity = limits<double>::infinity();
  if (!(a > 0 && b > 0 && a < infinity && b < infinity && x >= 0 && x <= 1)) return limits<double>::nan();
  if (x == 0 || x == 1) return x;
  const bool swapped = x > (a + 1) / (a + b + 2);
  const double p = swapped ? b : a, q = swapped ? a : b, z = swapped ? 1 - x : x;
  const double power = a * log(x) + b * log1p(-x) + log_gamma(a + b) - log_gamma(a) - log_gamma(b);
  const double part = exp(power) * beta_fraction(p, q, z) / p;
  return swapped ? 1 - part : part;
}
