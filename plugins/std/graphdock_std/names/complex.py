"""Names of complex arithmetic that are written by hand."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "abs": "graphdock_std.math.complex:abs",
    "angle": "graphdock_std.math.complex:angle",
    "complex": "graphdock_std.math.complex:complex",
    "conj": "graphdock_std.math.complex:conj",
    "imag": "graphdock_std.math.complex:imag",
    "real": "graphdock_std.math.complex:real",
    "to_complex128": "graphdock_std.math.functions:to_complex128",
    "to_complex64": "graphdock_std.math.functions:to_complex64",
    "math.abs": "graphdock_std.math.complex:abs",
    "math.angle": "graphdock_std.math.complex:angle",
    "math.conj": "graphdock_std.math.complex:conj",
    "math.imag": "graphdock_std.math.complex:imag",
    "math.real": "graphdock_std.math.complex:real",
}

#: What formulas may call besides, though it is not public.
HELPERS = {
    "imaginary_part": "graphdock_std.math.complex:imaginary_part",
    "real_part": "graphdock_std.math.complex:real_part",
    "times_i": "graphdock_std.math.complex:times_i",
}

#: The operator ``abs()``, which is one of two ops.
OPERATORS = {
    "__abs__": "graphdock_std.math.complex:abs",
}
