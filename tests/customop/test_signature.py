"""What a function's annotations say of an op, and the error for those that say nothing."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import graphdock as tf
import ml_dtypes
import numpy as np
import pytest
from graphdock.contracts.opdef import REQUIRED
from graphdock.errors import InvalidArgumentError
from graphdock_customop.signature import read_signature
from numpy.typing import NDArray

F = TypeVar("F", np.float32, np.float64)
Any_float = TypeVar("Any_float", bound=np.floating)
FLOATS = ("float16", "float32", "float64", "bfloat16")


class Unit(enum.Enum):
    KM = 1
    MILE = 2


class Pair(NamedTuple):
    low: NDArray[np.float32]
    high: NDArray[np.float32]


def read(function, **options):
    return read_signature("lab::op", function, **options)


def test_arrays_are_inputs_and_scalars_are_attributes():
    def f(
        x: NDArray[F],
        n: int,
        scale: float = 2,
        on: bool = True,
        label: str = "a",
        unit: Unit = Unit.KM,
        mode: Literal["up", "down"] = "down",
        sizes: list[int] = [1, 2],  # noqa: B006
        weights: tuple[float, ...] = (),
        dtype: tf.DType = tf.float32,
        most: int | None = None,
    ) -> NDArray[F]: ...

    found = read(f)
    assert [(a.name, a.dtype, a.arity) for a in found.inputs] == [("x", "F", "one")]
    assert [(a.name, a.dtype) for a in found.outputs] == [("y", "F")]
    assert [(t.name, t.allow) for t in found.types] == [("F", ("float32", "float64"))]
    assert {a.name: (a.type, a.default, a.allowed) for a in found.attrs} == {
        "n": ("int", REQUIRED, ()),
        "scale": ("float", 2.0, ()),
        "on": ("bool", True, ()),
        "label": ("string", "a", ()),
        "unit": ("string", "KM", ("KM", "MILE")),
        "mode": ("string", "down", ("up", "down")),
        "sizes": ("list(int)", (1, 2), ()),
        "weights": ("list(float)", (), ()),
        "dtype": ("type", tf.float32, ()),
        "most": ("int", None, ()),
    }
    assert found.enums == {"unit": Unit} and found.lists == {"sizes"}


@pytest.mark.parametrize(
    ("annotation", "dtype", "allow"),
    [
        (NDArray[np.float32], "float32", None),
        (NDArray[np.bool_], "bool", None),
        (NDArray[np.object_], "string", None),
        (NDArray[ml_dtypes.bfloat16], "bfloat16", None),
        (np.ndarray[Any, np.dtype[np.int64]], "int64", None),
        (NDArray[np.floating], "T", FLOATS),
        (NDArray[np.floating[Any]], "T", FLOATS),
        (NDArray[np.unsignedinteger], "T", ("uint8", "uint16", "uint32", "uint64")),
        (NDArray[Any_float], "Any_float", FLOATS),
    ],
)
def test_dtypes(annotation, dtype, allow):
    def f(x): ...

    f.__annotations__ = {"x": annotation, "return": annotation}
    found = read(f)
    assert found.inputs[0].dtype == found.outputs[0].dtype == dtype
    assert [set(t.allow) for t in found.types] == ([] if allow is None else [set(allow)])


@pytest.mark.parametrize("annotation", [np.ndarray, NDArray[Any], tf.Tensor])
def test_bare_arrays_share_a_dtype(annotation):
    def f(x, z): ...

    f.__annotations__ = {"x": annotation, "z": annotation, "return": annotation}
    found = read(f, types=("float32", np.int32))
    assert [a.dtype for a in (*found.inputs, *found.outputs)] == ["T", "T", "T"]
    assert found.types[0].allow == ("int32", "float32")
    assert "float16" in read(f).types[0].allow and "string" not in read(f).types[0].allow
    found = read(f, types={"z": "int32", "y": np.float32})
    assert [a.dtype for a in (*found.inputs, *found.outputs)] == ["T", "int32", "float32"]


def test_types_narrow_a_type_variable():
    def f(x: NDArray[F]) -> NDArray[F]: ...

    assert read(f, types={"F": ["float32"]}).types[0].allow == ("float32",)
    with pytest.raises(InvalidArgumentError, match="lets F be int32, its annotation does not"):
        read(f, types={"F": ["int32"]})
    with pytest.raises(InvalidArgumentError, match="types= names 'G'"):
        read(f, types={"G": ["float32"]})


def test_lists_and_optional_inputs():
    def f(xs: Sequence[NDArray[F]], bias: NDArray[F] | None = None) -> list[NDArray[F]]: ...

    found = read(f)
    assert [(a.name, a.arity, a.count) for a in found.inputs] == [("xs", "many", "N"), ("bias", "optional", None)]
    assert [(a.arity, a.count) for a in found.outputs] == [("many", "N")]
    assert [(a.name, a.inferred, a.minimum) for a in found.attrs] == [("N", True, 1)]


def test_several_outputs_have_names():
    def two(x: NDArray[F]) -> tuple[NDArray[F], NDArray[np.int32]]: ...
    def named(x: NDArray[np.float32]) -> Pair: ...
    def none(x: NDArray[F]) -> None: ...

    assert [(o.name, o.dtype) for o in read(two).outputs] == [("y0", "F"), ("y1", "int32")]
    assert [o.name for o in read(two, outputs=["values", "indices"]).outputs] == ["values", "indices"]
    assert [o.name for o in read(named).outputs] == ["low", "high"]
    assert read(none).outputs == ()
    with pytest.raises(InvalidArgumentError, match="another number of outputs"):
        read(two, outputs=["values"])


def _bad(annotations, defaults=None):
    def f(x): ...

    names = [n for n in annotations if n != "return"]
    scope: dict[str, Any] = {"defaults": defaults or {}}
    text = ", ".join(f"{n}=defaults[{n!r}]" if n in (defaults or {}) else n for n in names)
    exec(f"def f({text}): ...", scope)
    scope["f"].__annotations__ = annotations
    return scope["f"]


X = NDArray[F]
WRONG = {
    "no annotation": (lambda: read(lambda x: x), "parameter 'x' has no annotation"),
    "no result": (lambda: read(_bad({"x": X})), "what it returns has no annotation"),
    "a result that is no array": (
        lambda: read(_bad({"x": X, "return": int})),
        "annotated as something that is no array",
    ),
    "dict": (
        lambda: read(_bad({"x": dict, "return": X})),
        "parameter 'x' has an annotation that says nothing to an op",
    ),
    "a name that is nowhere": (lambda: read(_bad({"x": "Nowhere", "return": X})), "an annotation names 'Nowhere'"),
    "a dtype of no tensor": (
        lambda: read(_bad({"x": NDArray[np.longdouble], "return": X})),
        "a dtype that no tensor has",
    ),
    "a default of another type": (
        lambda: read(_bad({"x": X, "n": int, "return": X}, {"n": "three"})),
        "the default of 'n' is not what its annotation says",
    ),
    "a default not in the Literal": (
        lambda: read(_bad({"x": X, "m": Literal["a", "b"], "return": X}, {"m": "c"})),
        "the default of 'm'",
    ),
    "a mixed Literal": (lambda: read(_bad({"x": X, "m": Literal["a", 1], "return": X})), "mixes types"),
    "an input with a default": (lambda: read(_bad({"x": X, "return": X}, {"x": 1.0})), "input 'x' has a default"),
    "an optional input without": (lambda: read(_bad({"x": X | None, "return": X})), "needs the default None"),
    "an output of nobody's dtype": (
        lambda: read(_bad({"n": int, "return": NDArray[Any]})),
        "nothing says which dtype the output 'y' has",
    ),
    "an output of its own variable": (lambda: read(_bad({"n": int, "return": X})), "is no input's"),
    "a list from nowhere": (lambda: read(_bad({"x": X, "return": list[X]})), "how many tensors the list 'y' has"),
    "the operation's name": (
        lambda: read(_bad({"name": X, "return": X})),
        "'name' is an input and the name of the operation",
    ),
    "a parameter called like a variable": (
        lambda: read(_bad({"F": X, "return": X})),
        "'F' is an input and a type variable",
    ),
    "two dtypes of one argument": (
        lambda: read(_bad({"x": X, "return": X}), types={"x": ["int32", "int64"]}),
        "lets 'x' have one of several dtypes",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_says_nothing_is_named(case):
    call, message = WRONG[case]
    with pytest.raises(InvalidArgumentError) as caught:
        call()
    assert message in str(caught.value) and str(caught.value).startswith("lab::op: ")
    assert caught.value.site


@pytest.mark.parametrize("text", ["*xs", "**more", "x, /"])
def test_parameters_have_names(text):
    scope: dict[str, Any] = {}
    exec(f"def f({text}): ...", scope)
    scope["f"].__annotations__ = {text.strip("*, /"): X, "return": X}
    with pytest.raises(InvalidArgumentError, match="has no place in an op"):
        read(scope["f"])
