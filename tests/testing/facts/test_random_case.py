"""Kernels that draw are held to distribution, seed, step and width; each of the wrong ones is found."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock.errors import GraphdockError
from graphdock_testing.case import Case, ConformanceError
from graphdock_testing.conformance import Conformance
from graphdock_testing.facts import random_case
from graphdock_testing.facts.random_case import check_random, distance, too_far

pytestmark = pytest.mark.slow


def test_the_distance_of_two_samples():
    rng = np.random.default_rng(0)
    a, b = rng.random(8000), rng.random(8000)
    assert distance(a, b) < too_far(8000, 8000) < distance(a, b**1.2)


@pytest.mark.parametrize("op", ["RandomUniform", "RandomStandardNormal", "TruncatedNormal"])
def test_nothing_is_found_of_kernels_that_are_right(op):
    kit = Conformance("cpu")
    cases = [c for c in kit.cases(op) if c.kind == "random" and "float32" in c.types.values()]
    assert cases
    kit.check(cases[0])


def numbers(seeds, step, count=random_case.DRAWS):
    return np.random.default_rng([*seeds, step]).random(count).astype(np.float32)


#: What a kernel that draws does wrong -> its numbers, by seeds and step.
WRONG = {
    "the seed is ignored": lambda seeds, step: numbers((1, 1), step),
    "seed2 is ignored": lambda seeds, step: numbers((seeds[0], 1), step),
    "each step draws the same": lambda seeds, step: numbers(seeds, 0),
    "a block is repeated": lambda seeds, step: np.resize(numbers(seeds, step, 1024), random_case.DRAWS),
    "all are one number": lambda seeds, step: np.repeat(numbers(seeds, step, 4105), 2)[: random_case.DRAWS],
    "another distribution": lambda seeds, step: numbers(seeds, step) ** 2,
    "the last block is not drawn": lambda seeds, step: np.concatenate(
        [numbers(seeds, step)[:7000], np.zeros(1209, np.float32)]
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_is_found(monkeypatch, name):
    kit = Conformance("cpu")
    case = next(c for c in kit.cases("RandomUniform") if c.kind == "random" and "float32" in c.types.values())

    def drawn(bench, case, arrays, seeds, steps):
        return [WRONG[name](seeds, step) for step in range(steps)]

    monkeypatch.setattr(random_case, "_drawn", drawn)
    with pytest.raises(ConformanceError):
        kit.check(case)


def test_an_op_without_seeds_is_left_alone():
    kit = Conformance("cpu")
    assert check_random(kit._bench, Case("Relu", "random", 0, {"T": "float32"}, kit._all["Relu"])) is None


def test_errors_are_no_findings():
    assert not issubclass(ConformanceError, GraphdockError)
