"""complex.cuh against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

BINARY = {"a + b": np.add, "a - b": np.subtract, "a * b": np.multiply, "a / b": np.divide, "pow(a, b)": np.power}
UNARY = {
    "conj(a)": np.conj,
    "exp(a)": np.exp,
    "log(a)": np.log,
    "sqrt(a)": np.sqrt,
    "rsqrt(a)": lambda z: 1 / np.sqrt(z),
    "reciprocal(a)": np.reciprocal,
    "sin(a)": np.sin,
    "cos(a)": np.cos,
    "tan(a)": np.tan,
    "sinh(a)": np.sinh,
    "cosh(a)": np.cosh,
    "tanh(a)": np.tanh,
    "-a": np.negative,
    "polar(abs(a), angle(a))": np.positive,
    "a * abs_squared(a)": lambda z: z * np.abs(z) ** 2,
}


@pytest.mark.parametrize(("ctype", "dtype", "within"), [("complex64", "c8", 2e-5), ("complex128", "c16", 1e-12)])
def test_arithmetic_and_functions(rig, ctype, dtype, within):
    forms = [*BINARY, *UNARY]
    lines = "\n".join(f"y[{row} * n + i] = {form};" for row, form in enumerate(forms))
    code = f"""
    GD_KERNEL(forms)(const {ctype}* x, const {ctype}* w, {ctype}* y, i64 n) {{
      GD_GRID_LOOP(i64, i, n) {{
        const {ctype} a = x[i], b = w[i];
        {lines}
      }}
    }}"""
    rng = np.random.default_rng(0)
    a = (rng.standard_normal(200) + 1j * rng.standard_normal(200)).astype(dtype)
    b = (rng.standard_normal(200) + 1j * rng.standard_normal(200)).astype(dtype)
    y = rig.compute(code, "forms", a, b, np.zeros(200 * len(forms), dtype), 200)[2].reshape(len(forms), 200)
    for row, form in zip(y, forms, strict=True):
        wanted = BINARY[form](a, b) if form in BINARY else UNARY[form](a)
        np.testing.assert_allclose(row, wanted, rtol=within, atol=within, err_msg=form)


def test_edges(rig):
    code = """
    GD_KERNEL(edges)(const complex128* x, complex128* y, bool* same, i64 n) {
      GD_GRID_LOOP(i64, i, n) {
        y[i] = sqrt(x[i]), y[n + i] = tanh(x[i]), y[2 * n + i] = exp(x[i]), y[3 * n + i] = pow(x[i], complex128{0, 0});
        same[i] = x[i] == x[i] && !(x[i] != x[i]);
      }
    }"""
    x = np.array([0, -4, -4 - 0j, 1e8 + 1j, -300 + 2j, 1j, 2.0, complex(-1, -0.0)])
    _, y, same = rig.compute(code, "edges", x, np.zeros(4 * x.size, complex), np.zeros(x.size, bool), x.size)
    roots, tangents, powers, ones = y.reshape(4, -1)
    np.testing.assert_allclose(roots, np.sqrt(x), atol=1e-15)
    assert np.signbit(roots[-1].imag)
    np.testing.assert_allclose(tangents, np.tanh(x), atol=1e-15)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(powers[[0, 1, 2, 4, 5, 6]], np.exp(x[[0, 1, 2, 4, 5, 6]]), atol=1e-14)
    assert (ones == 1).all()
    assert same.all()


def test_reals_and_precisions_convert(rig):
    code = """
    GD_KERNEL(convert)(complex64* y, const complex128* x) {
      y[0] = from_compute<complex64>(2.5), y[1] = from_compute<complex64>(x[0]), y[2] = from_compute<complex64>(3);
    }"""
    y = rig.compute(code, "convert", np.zeros(3, "c8"), np.array([1 + 2j]), block=1)[0]
    assert y.tolist() == [2.5, 1 + 2j, 3]
