"""Names of mathematical functions written by hand."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "lbeta": "graphdock_std.functions:lbeta",
    "math.bessel_i0": "graphdock_std.functions:bessel_i0",
    "math.bessel_i1": "graphdock_std.functions:bessel_i1",
    "math.lbeta": "graphdock_std.functions:lbeta",
    "math.polyval": "graphdock_std.functions:polyval",
    "math.reciprocal_no_nan": "graphdock_std.functions:reciprocal_no_nan",
    "math.reduce_euclidean_norm": "graphdock_std.functions:reduce_euclidean_norm",
}
