"""Why values or gradients of an op may differ from PyTorch's. What is said of TensorFlow was seen there."""

from __future__ import annotations

from typing import Any

__all__ = ["EXPLAINED", "TOLERANCES_OF"]

_TIE = ("gradient of input", "where both are equal the first takes the whole gradient; PyTorch halves it")
_POWER = (
    "gradient of input [01]",
    "the gradient to the exponent of a base of at most 0 is 0; PyTorch's is -inf or NaN",
)
_HERMITIAN = (
    "complex128 .*gradient",
    "the gradient to a Hermitian matrix is Hermitian; PyTorch's diagonal is not real",
)

#: Op -> (a pattern of what differs, why). What no pattern finds is unexplained.
EXPLAINED: dict[str, tuple[tuple[str, str], ...]] = {
    "abs": (("float64 .*nan, PyTorch's 0.0", "the sign of NaN is NaN; PyTorch's is 0"),),
    "acosh": (("gradient .*nan, PyTorch's 0.0", "the gradient at -inf, where acosh is NaN, is NaN; PyTorch's is 0"),),
    "sgn": (
        ("float.* nan, PyTorch's 0.0", "the sign of NaN is NaN; PyTorch's is 0"),
        ("complex128 .*gradient", "sign passes no gradient; PyTorch's does of complex numbers"),
        ("complex128 .*PyTorch's .*nan", "of an infinite number NumPy's direction, where it has one; PyTorch's is NaN"),
    ),
    "sign": (("float.* nan, PyTorch's 0.0", "the sign of NaN is NaN; PyTorch's is 0"),),
    "digamma": (
        ("output 0: .* nan, PyTorch's -?inf", "NaN at the pole 0; PyTorch's is the limit from one side"),
        ("gradient", "inf at a pole; PyTorch's goes by sin(pi x), which is not quite 0 there"),
    ),
    "polygamma": (
        ("output 0: .* -?0.0, PyTorch's nan", "0 at infinity; PyTorch's is NaN"),
        ("n_0 .*nan, PyTorch's -?inf", "NaN at the pole 0 of digamma; PyTorch's is the limit from one side"),
        ("n_0 .*gradient", "inf at a pole; PyTorch's goes by sin(pi x), which is not quite 0 there"),
    ),
    "i0": (
        (
            "gradient .*nan, PyTorch's -?inf",
            "TensorFlow 1 composes it of exp and bessel_i0e: inf - inf where it overflows",
        ),
    ),
    "special.i1": (("gradient .*nan, PyTorch's", "at NaN the gradient is NaN; PyTorch's takes the branch of small x"),),
    "special.i1e": (
        ("gradient .*nan, PyTorch's", "at NaN the gradient is NaN; PyTorch's takes the branch of small x"),
    ),
    "angle": (
        ("float.* output 0: .* 0.0, PyTorch's nan", "the angle of a real NaN is 0"),
        ("complex128 .*gradient", "at 0 the gradient is not defined; PyTorch's is 0"),
    ),
    "log2": (("complex128 .*output 0: .*inf", "log(z) / log(2) divides an infinite complex number, which gives NaN"),),
    "log10": (
        ("complex128 .*output 0: .*inf", "log(z) / log(10) divides an infinite complex number, which gives NaN"),
    ),
    "logdet": (("InvalidArgumentError: Cholesky", "of Hermitian positive definite matrices only; these are not"),),
    "matrix_exp": (
        ("float32 .*: 1 of", "a small element of a matrix of norm 400; graphdock's is nearer to float64's"),
    ),
    "nn.functional.softsign": (
        ("gradient .* 0.0, PyTorch's nan", "1 / (1 + |x|)^2 at infinity is 0; PyTorch's is inf / inf"),
    ),
    "special.entr": (("gradient", "composed by where here, whose other branch has the gradient 0"),),
    "atan2": (("gradient .*nan, PyTorch's 0.0", "of (0, 0) it is not defined: 0 / 0; PyTorch's is 0"),),
    "maximum": (_TIE,),
    "minimum": (_TIE,),
    "logaddexp": (_TIE,),
    "pow": (
        _POWER,
        ("int64 .*negative power", "refused: no integer is its value; PyTorch's is 0"),
    ),
    "float_power": (_POWER,),
    "__rpow__": (_POWER, ("int64 .*negative power", "refused: no integer is its value; PyTorch's is 0")),
    "xlogy": (("gradient of input 0: .* 0.0, PyTorch's", "at x = 0 the gradient to x is 0; PyTorch's is log(y)"),),
    "nextafter": (("gradient of input 0", "the gradient to x is 1; PyTorch's is 0 where both are equal"),),
    "special.zeta": (
        ("nan, PyTorch's inf", "NaN of a negative q where x is no integer; PyTorch's is inf at its poles"),
    ),
    "hypot": (("gradient .* 0.0, PyTorch's nan", "said as the modulus of a complex number, whose gradient at 0 is 0"),),
    "bitwise_left_shift": (("elements differ", "shifts beyond the width go by the width; PyTorch's give 0"),),
    "bitwise_right_shift": (("elements differ", "shifts beyond the width go by the width; PyTorch's give 0 or -1"),),
    "addr": (("0.0, PyTorch's nan", "PyTorch leaves out a term times 0 only where it is the first"),),
    "linalg.cholesky": (_HERMITIAN,),
    "cholesky": (_HERMITIAN,),
    "cholesky_solve": (
        ("gradient of input 1", "the gradient to the factor is lower triangular; PyTorch's has the upper half too"),
    ),
    "linalg.pinv": (("singular .*gradient", "composed of svd, with its gradient; PyTorch's holds the rank"),),
    "nn.functional.relu": (("gradient .* 0.0, PyTorch's", "NaN passes no gradient; PyTorch's passes it"),),
    "nn.functional.relu6": (("gradient .* 0.0, PyTorch's", "NaN passes no gradient; PyTorch's passes it"),),
    "nn.functional.selu": (("gradient", "at 0 from the right, scale; PyTorch's from the left, scale * alpha"),),
    "nn.functional.hardtanh": (
        ("gradient .*PyTorch's 0.0", "at the limits, and of NaN, the gradient passes; PyTorch's is 0"),
    ),
    "nn.functional.hardsigmoid": (
        ("gradient", "PyTorch divides float64 gradients by a 6 whose reciprocal is rounded to float32"),
    ),
    "nn.functional.cross_entropy": (
        ("gradient", "labels are taken to add up to 1; PyTorch's gradient multiplies by their sum"),
    ),
}
#: Op -> dtype -> (rtol, atol), each with the reason.
TOLERANCES_OF: dict[str, dict[Any, tuple[float, float]]] = {}
