"""Shape functions that return just a shape, as OpDefs want them: one shape per output. What is wrong: tests of custom_op."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import pytest
from graphdock.errors import ShapeError
from graphdock.tensor_shape import TensorShape
from graphdock_customop.python_shape import shape_function
from graphdock_customop.signature import read_signature
from numpy.typing import NDArray

F = TypeVar("F", np.float32, np.float64)


class Context:
    def __init__(self, **attrs):
        self.attrs = attrs


def one(x: NDArray[F]) -> NDArray[F]: ...
def two(x: NDArray[F]) -> tuple[NDArray[F], NDArray[F]]: ...
def many(xs: list[NDArray[F]]) -> list[NDArray[F]]: ...


@pytest.mark.parametrize(
    ("function", "returned", "dims", "attrs"),
    [
        (one, (2, None), [(2, None)], {}),
        (one, [2, None], [(2, None)], {}),
        (one, None, [None], {}),
        (one, (), [()], {}),
        (one, TensorShape([3]), [(3,)], {}),
        (one, (None,), [(None,)], {}),
        (one, [(2, None)], [(2, None)], {}),
        (one, [[2, 3]], [(2, 3)], {}),
        (one, [], [()], {}),
        (one, [None], [None], {}),
        (one, [()], [()], {}),
        (one, [TensorShape([3])], [(3,)], {}),
        (two, [(2,), None], [(2,), None], {}),
        (two, ((), (1,)), [(), (1,)], {}),
        (many, [(2,), (3,), None], [(2,), (3,), None], {"N": 3}),
    ],
)
def test_shapes(function, returned, dims, attrs):
    rule = shape_function("lab::op", read_signature("lab::op", function), lambda ctx: returned)
    assert rule(Context(**attrs)) == dims


@pytest.mark.parametrize(
    ("function", "returned", "attrs"),
    [
        (two, None, {}),
        (two, [(2,)], {}),
        (two, 5, {}),
        (many, [(2,)], {"N": 2}),
        (one, [(2,), (3,)], {}),
        (one, ((2,),), {}),
        (one, "ab", {}),
    ],
)
def test_what_is_none(function, returned, attrs):
    rule = shape_function("lab::op", read_signature("lab::op", function), lambda ctx: returned)
    with pytest.raises(ShapeError, match="its shape function returned no shape") as caught:
        rule(Context(**attrs))
    assert ("return the shape itself" in str(caught.value)) == (function is one)
