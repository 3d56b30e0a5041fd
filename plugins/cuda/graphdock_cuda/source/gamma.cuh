// The gamma function's kin in double: lgamma, digamma, Hurwitz's zeta function, polygamma.
//
// M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions" (1964), chapters 6 and 23: the recurrence and reflection formulas,
// Stirling's asymptotic series (6.1.41, 6.3.18), the Taylor series of the logarithm (6.1.33), and Euler and Maclaurin's sum (23.1.30)
// for the zeta function. All coefficients stand from the highest power to the lowest.

constexpr double PI = 3.14159265358979323846;

// Of log gamma beyond Stirling's formula, in powers of 1/x^2 over x.
__device__ constexpr double STIRLING[] = {
    -0.029550653594771242, 0.00641025641025641, -0.0019175269175269176, 0.0008417508417508417, -0.0005952380952380953,
    0.0007936507936507937, -0.002777777777777778, 0.08333333333333333};
// Of digamma, in powers of 1/x^2.
__device__ constexpr double DIGAMMA[] = {
    -0.4432598039215686, 0.08333333333333333, -0.021092796092796094, 0.007575757575757576, -0.004166666666666667,
    0.003968253968253968, -0.008333333333333333, 0.08333333333333333};
// Of Euler and Maclaurin: the Bernoulli numbers B2k / (2k)!, from k = 1 on.
__device__ constexpr double MACLAURIN[] = {
    0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05, -8.267195767195768e-07, 2.08767569878681e-08,
    -5.284190138687493e-10, 1.3382536530684679e-11, -3.3896802963225827e-13, 8.586062056277845e-15,
    -2.174868698558062e-16, 5.5090028283602295e-18, -1.3954464685812522e-19};
// lgamma(2 + t) / t, |t| up to a half.
__device__ constexpr double NEAR_TWO[] = {
    -2.7595228851242334e-10, 5.731367241678862e-10, -1.1921401405860912e-09, 2.4836745438024785e-09,
    -5.183475041970047e-09, 1.0838659214896955e-08, -2.2711094608943164e-08, 4.769810169363981e-08,
    -1.00432248239681e-07, 2.1207184805554667e-07, -4.492469198764566e-07, 9.55141213040742e-07, -2.039215753801366e-06,
    4.374866789907487e-06, -9.439488275268395e-06, 2.0507212775670694e-05, -4.492623673813314e-05, 9.945751278180853e-05,
    -0.00022315475845357936, 0.0005096695247430425, -0.001192753911703261, 0.0028905103307415234, -0.007385551028673986,
    0.020580808427784546, -0.0673523010531981, 0.3224670334241132, 0.42278433509846713};

template <int N> GD_DEVICE double polynomial(const double (&c)[N], double x) {
  double total = c[0];
#pragma unroll
  for (int i = 1; i < N; ++i) total = total * x + c[i];
  return total;
}
GD_DEVICE bool is_infinite(double x) { return fabs(x) == limits<double>::infinity(); }
GD_DEVICE bool is_whole(double x) { return x == floor(x); }

// lgamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2) for x from 8 on.
GD_DEVICE double stirling_rest(double x) {
  const double inverse = 1 / x;
  return polynomial(STIRLING, inverse * inverse) * inverse;
}

// log |gamma(x)|; infinite at the poles.
GD_CALLED double log_gamma(double x) {
  const double y = x < 0 ? 1 - x : x;
  double result;
  if (is_infinite(y)) {
    result = limits<double>::infinity();
  } else if (y >= 8) {
    result = (y - 0.5) * log(y) - y + 0.91893853320467274178 + stirling_rest(y);
  } else {
    double near = y, up = 1, down = 1;
    for (int i = 0; i < 6 && near > 2.5; ++i) up *= near -= 1;
    for (int i = 0; i < 2 && near < 1.5; ++i) down *= near, near += 1;
    const double t = near - 2;
    result = polynomial(NEAR_TWO, t) * t + log(up) - log(down);
  }
  if (!(x < 0)) return result;
  if (is_infinite(x) || is_whole(x)) return limits<double>::infinity();
  return 1.14472988584940017414 - log(sin(PI * fabs(x - rint(x)))) - result;
}

// The derivative of log gamma; NaN at the poles.
GD_CALLED double digamma(double x) {
  double far = x < 0.5 ? 1 - x : x, sums = 0;
  for (int i = 0; i < 10 && far < 10; ++i) {
    sums += 1 / far;
    far += 1;
  }
  const double inverse = 1 / (far * far);
  const double result = log(far) - 0.5 / far - polynomial(DIGAMMA, inverse) * inverse - sums;
  if (!(x < 0.5)) return result;
  const double fraction = x - rint(x);
  if (x <= 0 && fraction == 0) return limits<double>::nan();
  return result - PI / tan(PI * fraction);
}

// The sum of (q + k)^-s for q > -13.
GD_CALLED double zeta_sum(double s, double q) {
  double total = 0;
  for (int i = 12 + static_cast<int>(q < 0 ? ceil(-q) : 0.0); i > 0; --i) {
    total += pow(q, -s);
    q += 1;
  }
  double power = pow(q, -s);
  total += power * q / (s - 1) + 0.5 * power;
  double rising = s;
  power /= q;
  for (int i = 0; i < 12; ++i) {
    total += MACLAURIN[i] * (power == 0 ? 0.0 : rising) * power;
    rising *= (s + 2 * i + 1) * (s + 2 * i + 2);
    power /= q * q;
  }
  return total;
}

// Hurwitz's zeta function for x > 1. Infinite at the poles x = 1 and q = 0, -1, ...; NaN for x < 1, and for negative q with an x that
// is no integer. Far below 0 the terms of negative base are the difference of two sums over positive ones.
GD_CALLED double zeta(double x, double q) {
  if (!(x >= 1) || q != q || (q < 0 && !is_whole(x))) return limits<double>::nan();
  if (x == 1 || (q <= 0 && is_whole(q))) return limits<double>::infinity();
  if ((is_infinite(x) && q > 1) || (is_infinite(q) && q > 0)) return 0;
  if (is_infinite(q)) q = 1;
  if (q >= -12) return zeta_sum(x, q);
  const double a = -q, mirrored = zeta_sum(x, a - floor(a)) - zeta_sum(x, a + 1);
  return zeta_sum(x, q - floor(q)) + (fmod(x, 2.0) == 0 ? mirrored : -mirrored);
}

// Derivative n of digamma; NaN where n is negative or no integer, or above 170.
GD_CALLED double polygamma(double n, double x) {
  if (!(n >= 0 && is_whole(n) && n <= 170)) return limits<double>::nan();
  if (n == 0) return digamma(x);
  double factorial = 1;
  for (int i = 2; i <= static_cast<int>(n); ++i) factorial *= i;
  const double size = factorial * zeta(n + 1, x);
  return fmod(n, 2.0) == 1 ? size : -size;
}
