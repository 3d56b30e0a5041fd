"""Axes that become one: which do, and that the program computes what it did."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from graphdock.contracts import Axis, RegionInput, RegionOutput, RegionProgram, Term, dtypes
from graphdock.contracts.region_check import check_program
from graphdock_llvm.merging import merged
from graphdock_testing.random_regions import random_region
from graphdock_testing.region_reference import evaluate

F32, I64 = dtypes.float32, dtypes.int64


def program(shape, over, *more, strides=None, biases=(), open_axes=()):
    """The sum over some axes of a tensor, less what lies on others; and further terms."""
    whole = tuple(range(len(shape)))
    sizes = [None if a in open_axes else n for a, n in enumerate(shape)]

    def on(dims):
        return tuple([sizes[a] for a in dims]), tuple(dims)

    lies = {} if strides is None else {"strides": strides, "whole": (10**6,)}
    inputs = [RegionInput("x", 0, F32, *on(whole), **lies)]
    inputs += [RegionInput(f"b{i}", i + 1, F32, *on(dims)) for i, dims in enumerate(biases)]
    terms = [Term("input", F32, (), i.dims, k) for k, i in enumerate(inputs)]
    last = 0
    for number in range(1, len(inputs)):
        terms.append(Term("sub", F32, (last, number), whole))
        last = len(terms) - 1
    left = tuple([a for a in whole if a not in over])
    terms += [Term("sum", F32, (last,), left, over), *more]
    sum_ = len(terms) - 1 - len(more)
    outputs = [RegionOutput("y", sum_, F32, *on(left))]
    axes = tuple([Axis("ijklmn"[a], n) for a, n in enumerate(sizes)])
    found = RegionProgram("p", axes, tuple(inputs), tuple(terms), tuple(outputs))
    check_program(found)
    return found


@pytest.mark.parametrize(
    ("made", "groups"),
    [
        (program((4, 5, 6, 7), (0, 2, 3)), [[0], [1], [2, 3]]),
        (program((4, 5, 6, 7), (0, 3)), [[0], [1, 2], [3]]),
        (program((4, 5, 6, 7), (3,)), [[0, 1, 2], [3]]),
        (program((4, 5, 6, 7), (0, 1, 2, 3)), [[0, 1, 2, 3]]),
        (program((4, 5, 6, 7), (0, 2, 3), biases=[(1,), (0, 2, 3)]), [[0], [1], [2, 3]]),
        (program((4, 5, 6, 7), (0, 2, 3), biases=[(3,)]), [[0], [1], [2], [3]]),
        (program((4, 5, 6, 7), (0, 2, 3), strides=(900, 84, 14, 2)), [[0], [1], [2, 3]]),
        (program((4, 5, 6, 7), (0, 2, 3), strides=(900, 84, 8, 1)), [[0], [1], [2], [3]]),
        (program((4, 5, 6, 7), (0, 2, 3), open_axes=(3,)), [[0], [1], [2], [3]]),
        (program((4, 5, 6, 7), (0, 2, 3), open_axes=(0,)), [[0], [1], [2, 3]]),
        (program((4, 5, 6, 7), (0, 2, 3), Term("index", I64, (), (3,), 3)), [[0], [1], [2], [3]]),
        (program((4, 5, 6, 7), (0, 2, 3), Term("place", I64, (), (2, 3))), [[0], [1], [2, 3]]),
        (program((4, 5, 6, 7), (0, 2, 3), Term("extent", I64, (), (), 3)), [[0], [1], [2, 3]]),
    ],
)
def test_axes_that_nothing_tells_apart_become_one(made, groups):
    found, which = merged(made)
    assert which == groups
    check_program(found)
    assert len(found.axes) == len(groups)


def test_dims_of_one_place_do_not_keep_axes_apart():
    shape, dims = (4, 5, 1, 6, 7), (0, 1, None, 2, 3)
    made = program((4, 5, 6, 7), (0, 2, 3))
    made = replace(made, inputs=(replace(made.inputs[0], shape=shape, dims=dims),))
    found, groups = merged(made)
    assert groups == [[0], [1], [2, 3]]
    assert (found.inputs[0].shape, found.inputs[0].dims) == ((4, 5, 1, 42), (0, 1, None, 2))


def test_merged_programs_compute_the_same():
    fewer = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        extents, reduced = [((2, 3, 4, 5), (0, 2, 3)), ((3, 2, 2, 7), (0, 3)), ((2, 3, 5), (0, 2))][seed % 3]
        made, arrays = random_region(rng, extents, reduced, ("float64", "int32"), size=8)
        found, groups = merged(made)
        check_program(found)
        fewer += len(groups) < len(extents)
        given = [a.reshape(i.shape) for a, i in zip(arrays, found.inputs, strict=True)]
        for a, b in zip(evaluate(found, given), evaluate(made, arrays), strict=True):
            np.testing.assert_allclose(a.reshape(b.shape), b, 1e-12, 1e-12)
    assert fewer > 15
