"""Descriptions of kernels: what a plan has, and what is refused."""

from __future__ import annotations

import pytest
from graphdock.contracts import errors
from graphdock_triton.kernels.spec import (
    Config,
    Kernel,
    Problem,
    Stage,
    cdiv,
    derived,
    dim,
    plan,
    power,
    scratch,
    tensor,
    value,
)


class Function:
    """What a plan reads of a ``triton.jit`` function."""

    def __init__(self, name: str, *parameters: str) -> None:
        self.__name__ = name
        self.arg_names = list(parameters)


def kernel(**changed):
    facts = {
        "name": "twice",
        "doc": "",
        "arguments": (
            tensor("x", "T", "in", "[n]"),
            tensor("bias", "fp32", "in", "[n]", optional=True),
            scratch("parts", "fp32", "[count]", lambda p, c: cdiv(p.dims["n"], c["BLOCK"])),
            dim("n"),
            dim("stride"),
            derived("count", "of parts", lambda p, c: cdiv(p.dims["n"], c["BLOCK"])),
            value("factor"),
        ),
        "stages": (
            Stage(
                Function("first", "x", "bias", "parts", "n", "stride", "factor", "MODE", "BLOCK"),
                lambda p, c: (cdiv(p.dims["n"], c["BLOCK"]),),
            ),
            Stage(
                Function("second", "parts", "count", "WHOLE"),
                lambda p, c: (1,),
                lambda p, c: p.dims["n"] > c["BLOCK"],
                warps=1,
            ),
        ),
        "types": {"T": ("fp32", "fp16")},
        "flags": {"MODE": ("sum", "mean")},
        "configs": lambda p: [Config({"BLOCK": 32}, 8, 3), Config({"BLOCK": 64})],
        "constants": lambda p, c: {"WHOLE": p.dims["n"] % c["BLOCK"] == 0},
        "refuse": lambda p: "empty" if not p.dims["n"] else None,
    }
    return Kernel(**{**facts, **changed})


def problem(n=96, stride=1, kind="fp16", **more):
    return Problem({"n": n, "stride": stride}, {"T": kind}, **more)


def test_a_plan_has_what_is_compiled_and_launched():
    made = plan(kernel(), problem())
    first, second = made.launches
    assert (first.grid, second.grid) == ((3, 1, 1), (1, 1, 1))
    assert first.signature == {"x": "*fp16", "parts": "*fp32", "n": "i32", "factor": "fp32"}
    assert first.arguments == tuple(first.signature)
    assert first.constants == {"bias": None, "stride": 1, "MODE": "sum", "BLOCK": 32}
    assert first.divisible == ("x", "parts", "n")
    assert (first.options.warps, first.options.stages, second.options.warps) == (8, 3, 1)
    assert second.constants == {"WHOLE": True} and second.dims == {"count": 3}
    assert made.scratch == {"parts": ("fp32", 3)}


def test_code_differs_by_what_is_present_aligned_and_divisible():
    given = problem(n=40, stride=7, present=frozenset({"bias"}), unaligned=frozenset({"x"}), flags={"MODE": "mean"})
    (only,) = plan(kernel(), given, Config({"BLOCK": 64})).launches
    assert only.signature == {
        "x": "*fp16",
        "bias": "*fp32",
        "parts": "*fp32",
        "n": "i32",
        "stride": "i32",
        "factor": "fp32",
    }
    assert only.divisible == ("bias", "parts") and only.constants["MODE"] == "mean" and only.options.warps == 4


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (problem(kind="bf16"), errors.KernelRefused, "takes no bf16: fp32, fp16"),
        (problem(flags={"MODE": "max"}), errors.KernelRefused, "takes no MODE 'max': 'sum', 'mean'"),
        (problem(n=0), errors.KernelRefused, "twice: empty"),
        (problem(n=1 << 31), errors.KernelRefused, "n is 2147483648, too large for i32"),
        (problem(flags={"MODUS": 1}), errors.InternalError, "no flag MODUS"),
        (problem(present=frozenset({"x"})), errors.InternalError, "no optional argument x"),
        (Problem({"n": 5}, {"T": "fp32"}), errors.InternalError, "stride is not among the dims"),
    ],
)
def test_what_a_kernel_is_not_made_for_is_refused(given, error, words):
    with pytest.raises(error, match=words):
        plan(kernel(), given)


def test_a_parameter_that_nobody_names_is_an_error():
    with pytest.raises(errors.InternalError, match="nobody says what EXTRA of other is"):
        plan(kernel(stages=(Stage(Function("other", "x", "EXTRA"), lambda p, c: (1,)),)), problem())


def test_sizes_are_rounded_up():
    assert [power(n) for n in (0, 1, 2, 3, 1024, 1025)] == [1, 1, 2, 4, 1024, 2048]
    assert [cdiv(n, 4) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
