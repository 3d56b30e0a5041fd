"""Names of mathematical functions written by hand."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "lbeta": "graphdock_std.math.special:lbeta",
    "math.bessel_i0": "graphdock_std.math.special:bessel_i0",
    "math.bessel_i1": "graphdock_std.math.special:bessel_i1",
    "math.lbeta": "graphdock_std.math.special:lbeta",
    "math.polyval": "graphdock_std.math.special:polyval",
    "math.reciprocal_no_nan": "graphdock_std.math.special:reciprocal_no_nan",
    "math.reduce_euclidean_norm": "graphdock_std.math.special:reduce_euclidean_norm",
}
