// The quantiles of the normal distribution, in double. After gamma.cuh, for its polynomials.
//
// M. J. Wichura, "Algorithm AS 241", Applied Statistics 37 (1988), pages 477-484, to about 16 digits.

__device__ constexpr double CENTRE_TOP[] = {
    2509.0809287301227, 33430.57558358813, 67265.7709270087, 45921.95393154987, 13731.69376550946, 1971.5909503065513,
    133.14166789178438, 3.3871328727963665};
__device__ constexpr double CENTRE_BOTTOM[] = {
    5226.495278852854, 28729.085735721943, 39307.89580009271, 21213.794301586597, 5394.196021424751, 687.1870074920579,
    42.31333070160091, 1.0};
__device__ constexpr double MIDDLE_TOP[] = {
    0.0007745450142783414, 0.022723844989269184, 0.2417807251774506, 1.2704582524523684, 3.6478483247632045,
    5.769497221460691, 4.630337846156546, 1.4234371107496835};
__device__ constexpr double MIDDLE_BOTTOM[] = {
    1.0507500716444169e-09, 0.0005475938084995345, 0.015198666563616457, 0.14810397642748008, 0.6897673349851,
    1.6763848301838038, 2.053191626637759, 1.0};
__device__ constexpr double TAIL_TOP[] = {
    2.0103343992922881e-07, 2.7115555687434876e-05, 0.0012426609473880784, 0.026532189526576124, 0.29656057182850487,
    1.7848265399172913, 5.463784911164114, 6.657904643501103};
__device__ constexpr double TAIL_BOTTOM[] = {
    2.0442631033899397e-15, 1.421511758316446e-07, 1.8463183175100548e-05, 0.0007868691311456133, 0.014875361290850615,
    0.1369298809227358, 0.599832206555888, 1.0};

// The quantile of 1/2 + centred, given also as tail, its distance to the nearer end of [0, 1].
GD_DEVICE double quantile(double centred, double tail) {
  if (fabs(centred) <= 0.425) {
    const double square = 0.180625 - centred * centred;
    return centred * polynomial(CENTRE_TOP, square) / polynomial(CENTRE_BOTTOM, square);
  }
  if (!(tail >= 0)) return limits<double>::nan();
  if (tail == 0) return copysign(limits<double>::infinity(), centred);
  const double root = sqrt(-log(tail < 1e-320 ? 1e-320 : tail > 0.5 ? 0.5 : tail));
  const double outer = root <= 5 ? polynomial(MIDDLE_TOP, root - 1.6) / polynomial(MIDDLE_BOTTOM, root - 1.6)
                                 : polynomial(TAIL_TOP, root - 5) / polynomial(TAIL_BOTTOM, root - 5);
  return copysign(outer, centred);
}
// NaN outside of [0, 1].
GD_DEVICE double normal_quantile(double p) { return quantile(p - 0.5, p < 1 - p ? p : 1 - p); }
// The inverse of the error function; NaN outside of [-1, 1].
GD_DEVICE double inverse_erf(double y) { return quantile(y / 2, (1 - fabs(y)) / 2) * 0.70710678118654752440; }
