"""From the signature of a typed Python function to the arguments, attributes and type variables of an OpDef.

An array annotation is an input; a scalar, enum, string, list or DType is an attribute; what is returned is an output:

    F = TypeVar("F", np.float32, np.float64)

    def scale(x: NDArray[F], factor: float = 2.0, mode: Literal["up", "down"] = "up") -> NDArray[F]: ...
"""

from __future__ import annotations

import collections.abc
import enum
import inspect
import types as python_types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from graphdock.contracts.opdef import REQUIRED, ArgDef, AttrDef, OpDef, TypeVarDef
from graphdock.dtypes import ALL, DType, as_dtype
from graphdock.errors import DTypeError, GraphdockError, InvalidArgumentError, did_you_mean
from graphdock.ops import Tensor, normal_attr
from graphdock.tensor_shape import TensorShape

__all__ = ["Signature", "read_signature"]

#: Attribute types by annotation.
_SCALARS: dict[Any, str] = {
    int: "int",
    float: "float",
    bool: "bool",
    str: "string",
    DType: "type",
    TensorShape: "shape",
}
_LISTS = (list, tuple, collections.abc.Sequence)
_NOTHING = type(None)
#: Dtypes by the letter in ``DType.kind``, for NumPy's abstract classes.
_ABSTRACT = {
    "number": "iufc",
    "integer": "iu",
    "signedinteger": "i",
    "unsignedinteger": "u",
    "inexact": "fc",
    "floating": "f",
    "complexfloating": "c",
    "generic": "biufc",
}
_TAKES = (
    "an array (numpy.typing.NDArray), int, float, bool, str, an Enum, a Literal, tf.DType, or a list of one of them"
)


@dataclass(frozen=True, slots=True)
class Signature:
    """Signature of an op, as a function says it.

    Attributes:
      python: its Python signature, by which calls are bound.
      enums: attribute -> the Enum whose members the function takes.
      lists: attributes and list inputs that the function takes as a list, not a tuple.
    """

    python: inspect.Signature
    inputs: tuple[ArgDef, ...]
    outputs: tuple[ArgDef, ...]
    attrs: tuple[AttrDef, ...]
    types: tuple[TypeVarDef, ...]
    enums: Mapping[str, type[enum.Enum]] = field(default_factory=dict)
    lists: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Array:
    """An array annotation: the scalar type in it (a TypeVar, a NumPy class, Any), and how many there are."""

    scalar: Any
    arity: str = "one"


class _Reader:
    """Reads one function. ``types`` is the user's constraint, ``outputs`` his names of outputs."""

    def __init__(self, op: str, function: Callable[..., Any], types: Any, outputs: Sequence[str] | None) -> None:
        self.op, self.function, self.given, self.names = op, function, types, outputs
        self.variables: dict[Any, TypeVarDef] = {}
        self.fixed: dict[str, str] = {}
        self.inputs: list[ArgDef] = []
        self.attrs: list[AttrDef] = []
        self.enums: dict[str, type[enum.Enum]] = {}
        self.lists: set[str] = set()

    def fail(self, message: str, **more: Any) -> InvalidArgumentError:
        code = self.function.__code__
        return InvalidArgumentError(f"{self.op}: {message}", site=f"{code.co_filename}:{code.co_firstlineno}", **more)

    def read(self) -> Signature:
        python = inspect.signature(self.function)
        try:
            hints = typing.get_type_hints(self.function)
        except NameError as error:
            raise self.fail(
                f"an annotation names {error.name!r}, which is not there when the op is made",
                hint="import it at run time, not only under TYPE_CHECKING",
            ) from None
        arguments = [(p, self.kind(p, hints)) for p in python.parameters.values()]
        results = self.results(hints)
        self.constrain([p.name for p, kind in arguments if isinstance(kind, _Array)], [n for n, _ in results])
        counts: list[str] = []
        for parameter, kind in arguments:
            if isinstance(kind, _Array):
                self.inputs.append(self.input(parameter, kind, counts))
            else:
                self.attrs.append(self.attr(parameter, kind))
        outputs = tuple(self.output(name, kind, counts) for name, kind in results)
        for name in counts:
            self.attrs.append(AttrDef(name, "int", minimum=1, inferred=True))
        found = tuple(self.variables.values())
        self.check_names(found)
        if isinstance(self.given, Mapping):
            unused = [n for n in self.given if n not in self.fixed and n not in [v.name for v in found]]
            if unused:
                known = [v.name for v in found] + [a.name for a in (*self.inputs, *outputs)]
                raise self.fail(f"types= names {unused[0]!r}, which it has not", hint=did_you_mean(unused[0], known))
        return Signature(
            python, tuple(self.inputs), outputs, tuple(self.attrs), found, self.enums, frozenset(self.lists)
        )

    # -- parameters

    def kind(self, p: inspect.Parameter, hints: Mapping[str, Any]) -> Any:
        """An _Array, or the annotation of an attribute."""
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY):
            raise self.fail(f"parameter {p} has no place in an op", expected="parameters that are given by name")
        if p.name not in hints:
            raise self.fail(f"parameter {p.name!r} has no annotation", expected=_TAKES)
        annotation = hints[p.name]
        array = _as_array(annotation)
        return annotation if array is None else array

    def input(self, p: inspect.Parameter, array: _Array, counts: list[str]) -> ArgDef:
        arity, count = array.arity, None
        if arity == "many":
            if "N" not in counts:
                counts.append("N")
            count = "N"
            self.lists.add(p.name)
        if p.default is not p.empty and not (arity == "optional" and p.default is None):
            raise self.fail(
                f"input {p.name!r} has a default", hint="only an optional input has one: `NDArray[F] | None = None`"
            )
        if arity == "optional" and p.default is p.empty:
            raise self.fail(f"the optional input {p.name!r} needs the default None")
        return ArgDef(p.name, self.dtype(p.name, array.scalar), arity=arity, count=count)

    def attr(self, p: inspect.Parameter, annotation: Any) -> AttrDef:
        annotation, optional = _without_none(annotation)
        kind, allowed = self.attr_type(p.name, annotation)
        default = REQUIRED if p.default is p.empty else p.default
        if isinstance(default, enum.Enum) and p.name in self.enums:
            default = default.name
        attr = AttrDef(p.name, kind, allowed=allowed)
        if default is not REQUIRED and not (default is None and optional):
            try:
                default = normal_attr(OpDef(self.op), attr, default)
            except GraphdockError as error:
                raise self.fail(
                    f"the default of {p.name!r} is not what its annotation says",
                    expected=error.expected or kind,
                    got=repr(p.default),
                ) from None
        if optional and default is REQUIRED:
            raise self.fail(f"the optional attribute {p.name!r} needs the default None")
        return AttrDef(p.name, kind, default, allowed=allowed)

    def attr_type(self, name: str, annotation: Any) -> tuple[str, tuple[Any, ...]]:
        """The attribute's type and what it may be."""
        if annotation in _SCALARS:
            return _SCALARS[annotation], ()
        if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
            self.enums[name] = annotation
            return "string", tuple(annotation.__members__)
        origin, args = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is typing.Literal:
            kinds = list({type(v) for v in args})
            if kinds in ([int], [str]):
                return _SCALARS[kinds[0]], args
            raise self.fail(f"the Literal of {name!r} mixes types", expected="strings only, or ints only")
        if origin in _LISTS and args and (origin is not tuple or args[1:] == (...,)):
            kind, allowed = self.attr_type(name, args[0])
            if origin is list:
                self.lists.add(name)
            if not kind.startswith("list(") and name not in self.enums:
                return f"list({kind})", allowed
        shown = getattr(annotation, "__name__", None) if isinstance(annotation, type) else None
        raise self.fail(
            f"parameter {name!r} has an annotation that says nothing to an op",
            expected=_TAKES,
            got=shown or repr(annotation),
        )

    # -- results

    def results(self, hints: Mapping[str, Any]) -> list[tuple[str, _Array]]:
        """Name and annotation of each output."""
        if "return" not in hints:
            raise self.fail("what it returns has no annotation", expected="an array, a tuple of arrays, or None")
        returned = hints["return"]
        if returned in (None, _NOTHING):
            items: list[Any] = []
            names: Sequence[str] = ()
        elif isinstance(returned, type) and issubclass(returned, tuple) and hasattr(returned, "_fields"):
            fields = typing.get_type_hints(returned)
            items, names = [fields.get(n, Any) for n in returned._fields], returned._fields
        elif typing.get_origin(returned) is tuple and typing.get_args(returned)[1:] != (...,):
            items = list(typing.get_args(returned))
            names = [f"y{i}" for i in range(len(items))]
        else:
            items, names = [returned], ["y"]
        arrays = [_as_array(item) for item in items]
        if any(a is None or a.arity == "optional" for a in arrays):
            raise self.fail(
                "what it returns is annotated as something that is no array",
                expected="an array, a tuple of arrays, or None",
                got=repr(returned),
            )
        if self.names is not None:
            if isinstance(self.names, str) or len(self.names) != len(items):
                raise self.fail(
                    "outputs= names another number of outputs", expected=f"{len(items)} names", got=repr(self.names)
                )
            names = self.names
        for name in names:
            if not name.isidentifier():
                raise self.fail(f"an output is called {name!r}", expected="a name of letters, digits and underscores")
        return [(n, a) for n, a in zip(names, arrays, strict=True) if a is not None]

    def output(self, name: str, array: _Array, counts: list[str]) -> ArgDef:
        if array.arity == "many" and not counts:
            raise self.fail(
                f"nothing says how many tensors the list {name!r} has",
                hint="a list is returned for a list that is taken; for another length write the op in YAML",
            )
        count = "N" if array.arity == "many" else None
        if array.scalar is Any and name not in self.fixed:
            bound = list(dict.fromkeys(a.dtype for a in self.inputs))
            if len(bound) != 1:
                raise self.fail(
                    f"nothing says which dtype the output {name!r} has", hint=f'say types={{"{name}": "float32"}}'
                )
            return ArgDef(name, bound[0], arity=array.arity, count=count)
        return ArgDef(name, self.dtype(name, array.scalar, output=True), arity=array.arity, count=count)

    # -- dtypes

    def dtype(self, name: str, scalar: Any, output: bool = False) -> str:
        """A dtype's name or a type variable's, for an argument."""
        if name in self.fixed:
            return self.fixed[name]
        key = scalar
        if not isinstance(scalar, typing.TypeVar):
            concrete = None if scalar is Any or _abstract(scalar) else self.named(scalar, name)
            if concrete is not None:
                return concrete
            key = None if scalar is Any else _abstract(scalar)
        if key not in self.variables:
            if output:
                raise self.fail(f"the dtype of the output {name!r} is no input's, so nothing decides it")
            self.variables[key] = self.variable(key, scalar)
        return self.variables[key].name

    def named(self, scalar: Any, what: str) -> str:
        try:
            return as_dtype(scalar).name
        except DTypeError as error:
            raise self.fail(f"{what!r} has a dtype that no tensor has: {error.message}", hint=error.hint) from None

    def variable(self, key: Any, scalar: Any) -> TypeVarDef:
        if isinstance(key, typing.TypeVar):
            name = key.__name__
            allow = self.allowed(key.__constraints__ or ((key.__bound__,) if key.__bound__ is not None else ()), name)
        else:
            taken = {v.name for v in self.variables.values()}
            name = next(n for n in ("T", *(f"T{i}" for i in range(2, 100))) if n not in taken)
            allow = () if scalar is Any else self.allowed((scalar,), name)
        if isinstance(self.given, Mapping):
            asked = self.given.get(name)
        else:
            asked = self.given if not self.variables else None
        if asked is not None:
            wanted = self.allowed(asked if isinstance(asked, (list, tuple)) else (asked,), name)
            outside = [n for n in wanted if allow and n not in allow]
            if outside:
                raise self.fail(
                    f"types= lets {name} be {outside[0]}, its annotation does not", expected=", ".join(allow)
                )
            allow = wanted
        return TypeVarDef(name, allow or self.allowed((np.generic,), name))

    def allowed(self, scalars: Sequence[Any], name: str) -> tuple[str, ...]:
        """Names of the dtypes that NumPy classes, dtypes or names stand for, in the order of the table; () for all."""
        found: set[str] = set()
        for scalar in scalars:
            kinds = _abstract(scalar)
            if kinds is None:
                found.add(self.named(scalar, name))
            else:
                found.update(n for n, d in ALL.items() if d.kind in _ABSTRACT[kinds])
        return tuple(n for n in ALL if n in found)

    def constrain(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Take from ``types=`` what fixes the dtype of one argument."""
        if not isinstance(self.given, Mapping):
            return
        for name in (*inputs, *outputs):
            if name in self.given:
                value = self.given[name]
                if isinstance(value, (list, tuple)) or _abstract(value):
                    raise self.fail(
                        f"types= lets {name!r} have one of several dtypes",
                        expected="one dtype",
                        hint=f"annotate {name!r} with a TypeVar: NDArray[F]",
                    )
                self.fixed[name] = self.named(value, name)

    def check_names(self, variables: Sequence[TypeVarDef]) -> None:
        """Every name an op has is said once."""
        seen: dict[str, str] = {"name": "the name of the operation"}
        named = [(v.name, "a type variable") for v in variables]
        named += [(a.name, "an input") for a in self.inputs] + [(a.name, "an attribute") for a in self.attrs]
        for name, what in named:
            if name in seen:
                raise self.fail(f"{name!r} is {what} and {seen[name]} too", hint="rename one of them")
            seen[name] = what


def _as_array(annotation: Any) -> _Array | None:
    """Return what an annotation says of an array; None when it is no array."""
    if annotation is Tensor or annotation is np.ndarray:
        return _Array(Any)
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is np.ndarray:
        inner = typing.get_args(args[1]) if len(args) > 1 else ()
        return _Array(inner[0] if inner else Any)
    if origin in (typing.Union, python_types.UnionType):
        inner_type, optional = _without_none(annotation)
        array = _as_array(inner_type) if optional else None
        return None if array is None or array.arity != "one" else _Array(array.scalar, "optional")
    if origin in _LISTS and args and (origin is not tuple or args[1:] == (...,)):
        array = _as_array(args[0])
        return None if array is None or array.arity != "one" else _Array(array.scalar, "many")
    return None


def _without_none(annotation: Any) -> tuple[Any, bool]:
    """``X | None`` -> (X, True); another annotation as it is."""
    if typing.get_origin(annotation) in (typing.Union, python_types.UnionType):
        rest = [a for a in typing.get_args(annotation) if a is not _NOTHING]
        if len(rest) == 1:
            return rest[0], True
    return annotation, False


def _abstract(scalar: Any) -> str | None:
    """The name of an abstract NumPy class, such as ``floating``; None for what is one dtype."""
    origin = typing.get_origin(scalar) or scalar
    name = getattr(origin, "__name__", "") if isinstance(origin, type) else ""
    return name if name in _ABSTRACT and getattr(origin, "__module__", "") == "numpy" else None


def read_signature(
    op: str, function: Callable[..., Any], types: Any = None, outputs: Sequence[str] | None = None
) -> Signature:
    """The arguments, attributes and type variables that a function's annotations say.

    Args:
      op: the op's name, for messages.
      types: dtypes of the first type variable, or a mapping from a type variable's name to dtypes, or from an argument's to
        one dtype.
      outputs: names of the outputs; default ``y``, or ``y0``, ``y1``, ...; a NamedTuple's fields where one is returned.

    Raises:
      InvalidArgumentError: what is not annotated, or annotated with what no op takes; names the parameter and the line.
    """
    return _Reader(op, function, types, outputs).read()
