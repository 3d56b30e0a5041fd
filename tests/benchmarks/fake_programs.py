"""Programs without a framework, run by real worker processes in `test_harness.py`."""

from __future__ import annotations

import os

from benchmarks.program import Bar, Case, Program, Unavailable


def counting(step: float = 1.0) -> Case:
    total = [0.0]

    def call() -> None:
        total[0] += step

    return Case(call, lambda: [total], per_call=2)


def noisy() -> Case:
    print("a framework's banner, on standard output")
    return counting()


def unavailable() -> Case:
    raise Unavailable("no backend 'llvm'; pip install graphdock-llvm")


def broken() -> Case:
    raise LookupError("no such op")


def deadly() -> Case:
    return Case(lambda: os._exit(7), lambda: [0.0])


def broken_later() -> Case:
    calls = [0]

    def call() -> None:
        calls[0] += 1
        if calls[0] > 5:
            raise ArithmeticError("worn out")

    return Case(call, lambda: [[5.0]])


def in_parts() -> Case:
    """Timed by a clock of its own, which every call sets on by one, and which starts anew before each burst."""
    clock = [7.0]

    def begin() -> None:
        clock[0] = 0.0

    def call() -> None:
        clock[0] += 1.0

    parts = {"first": 2e-6, "second": 0.5}
    return Case(call, lambda: [[1.0]], clock=lambda: clock[0], before=begin, parts=lambda: parts)


def told() -> Case:
    """Its value is what its worker finds in TF_USE_LEGACY_KERAS, 0 where that is unset."""
    return Case(lambda: None, lambda: [float(os.environ.get("TF_USE_LEGACY_KERAS", "0"))])


PROGRAMS = (
    Program(
        "agree",
        "all count to five",
        {"graphdock": counting, "numpy": counting, "peer/noisy": noisy, "gone": counting},
        (Bar("T1", ("numpy", "peer/noisy"), 1e9), Bar("T2", ("gone",), 1.0)),
        check_calls=5,
    ),
    Program(
        "differ",
        "one counts in other steps",
        {"graphdock": lambda: counting(1.01), "numpy": counting, "peer": lambda: counting(1.00001)},
        (Bar("T1", ("numpy",), 1.0),),
        check_calls=5,
    ),
    Program(
        "fail",
        "workers that cannot, will not, or die",
        {
            "graphdock": unavailable,
            "numpy": counting,
            "broken": broken,
            "deadly": deadly,
            "broken_later": broken_later,
        },
        check_calls=5,
    ),
    Program("told", "what the environment says", {"jax": told, "tensorflow/flow_v2": told}),
    Program("parts", "one that knows its parts", {"graphdock": in_parts}, reference="graphdock", once=True),
)
