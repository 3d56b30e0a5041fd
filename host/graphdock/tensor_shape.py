"""TensorShape and Dimension: a static shape as people see it, under TensorFlow's names.

A known :class:`Dimension` is an ``int`` and has TensorFlow's ``.value`` besides; an unknown one has the value None. The graph, the
plan and kernels use the bare form, :data:`graphdock.shape.Dims`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.errors import InvalidArgumentError, ShapeError
from graphdock.shape import Dims, HasDims, as_dims, common, compatible, merge, show, size

__all__ = ["Dimension", "TensorShape", "TensorShapeProto", "as_dimension", "as_shape", "unknown_shape"]


class Dimension:
    """One dim of a shape: an int where it is known, else ``Dimension(None)``, which equals None and nothing else.

    Sums, differences, products, quotients and remainders with an unknown dim are unknown; comparisons with one are None, as in
    TensorFlow.

    Raises:
      ShapeError: the value is no integer, or is negative.
    """

    __slots__ = ()

    def __new__(cls, value: Any) -> Dimension:
        if isinstance(value, Dimension):
            return value
        if value is None:
            return _UNKNOWN
        if isinstance(value, (str, bytes, bool)) or not hasattr(value, "__index__"):
            raise ShapeError("a dim is of the wrong type", expected="an integer or None", got=repr(value))
        if value.__index__() < 0:
            raise ShapeError("a dim is negative", expected="0 or more", got=str(value))
        return _Known(value.__index__())

    @property
    def value(self) -> int | None:
        """The number, or None."""
        raise NotImplementedError

    def is_compatible_with(self, other: Any) -> bool:
        """Return whether both may be one number."""
        theirs = Dimension(other).value
        return self.value is None or theirs is None or self.value == theirs

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raise ShapeError unless both may be one number."""
        if not self.is_compatible_with(other):
            raise ShapeError(f"Dimensions {self} and {Dimension(other)} are not compatible")

    def merge_with(self, other: Any) -> Dimension:
        """Return what is known when both are one number. Raises ShapeError when they are not."""
        self.assert_is_compatible_with(other)
        return Dimension(other) if self.value is None else self

    def __str__(self) -> str:
        return "?" if self.value is None else str(self.value)

    def __repr__(self) -> str:
        return f"Dimension({self.value})"


class _Unknown(Dimension):
    __slots__ = ()

    def __new__(cls) -> _Unknown:
        return object.__new__(cls)

    @property
    def value(self) -> None:
        return None

    def __eq__(self, other: object) -> Any:
        return self._equals(other, True)

    def __ne__(self, other: object) -> Any:
        return self._equals(other, False)

    @staticmethod
    def _equals(other: object, yes: bool) -> Any:
        if isinstance(other, HasDims):
            return NotImplemented
        return yes if other is None or isinstance(other, _Unknown) else None

    def __hash__(self) -> int:
        return hash(None)

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> Any:
        return Dimension, (None,)

    def _unknown(self, other: Any) -> Any:
        return _UNKNOWN if _is_dim(other) else NotImplemented

    def _incomparable(self, other: Any) -> Any:
        return None if _is_dim(other) else NotImplemented

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _unknown
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _unknown
    __lt__ = __le__ = __gt__ = __ge__ = _incomparable


class _Known(int, Dimension):
    __slots__ = ()

    def __new__(cls, value: int) -> _Known:
        return int.__new__(cls, value)

    @property
    def value(self) -> int:
        return int(self)

    def __add__(self, other: Any) -> Any:
        return _combined(int.__add__, self, other)

    def __sub__(self, other: Any) -> Any:
        return _combined(int.__sub__, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _combined(int.__rsub__, self, other)

    def __mul__(self, other: Any) -> Any:
        return _combined(int.__mul__, self, other)

    def __floordiv__(self, other: Any) -> Any:
        return _combined(int.__floordiv__, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _combined(int.__rfloordiv__, self, other)

    def __mod__(self, other: Any) -> Any:
        return _combined(int.__mod__, self, other)

    def __rmod__(self, other: Any) -> Any:
        return _combined(int.__rmod__, self, other)

    __radd__ = __add__
    __rmul__ = __mul__
    __str__ = Dimension.__str__
    __repr__ = Dimension.__repr__

    def __format__(self, spec: str) -> str:
        return format(int(self), spec)

    def __reduce__(self) -> Any:
        return Dimension, (int(self),)


_UNKNOWN = _Unknown()


def _is_dim(other: Any) -> bool:
    return other is None or isinstance(other, (int, Dimension))


def _combined(operator: Any, dim: int, other: Any) -> Any:
    """A dim, or the plain number where it is none: a difference may be negative."""
    if not isinstance(other, int):
        return _UNKNOWN if other is None else NotImplemented
    number = operator(dim, int(other))
    return _Known(number) if number >= 0 else number


@lazy_dataclass(frozen=True, slots=True)
class TensorShapeProto:
    """A shape as plain data: ``dim`` holds sizes, -1 where unknown."""

    dim: tuple[int, ...]
    unknown_rank: bool


class TensorShape(HasDims):
    """A static shape; compares equal to what makes it: a sequence of dims, or the only one.

    ``TensorShape(None)`` has an unknown rank; a dim of None is unknown.
    """

    __slots__ = ("_dims",)

    def __init__(self, dims: Any) -> None:
        if isinstance(dims, TensorShapeProto):
            dims = None if dims.unknown_rank else [None if d < 0 else d for d in dims.dim]
        self._dims: Dims = as_dims(dims)

    @property
    def dims(self) -> tuple[Dimension, ...] | None:
        """The dims, or None when the rank is unknown."""
        return None if self._dims is None else tuple([Dimension(d) for d in self._dims])

    @property
    def rank(self) -> int | None:
        return None if self._dims is None else len(self._dims)

    ndims = rank

    def is_fully_defined(self) -> bool:
        return self._dims is not None and None not in self._dims

    def assert_is_fully_defined(self) -> None:
        """Raise ShapeError unless every dim is known."""
        if not self.is_fully_defined():
            raise ShapeError(f"Shape {self} is not fully defined")

    def num_elements(self) -> int | None:
        return size(self._dims)

    def as_list(self) -> list[int | None]:
        """The dims as a list of ints and None. Raises InvalidArgumentError when the rank is unknown."""
        if self._dims is None:
            raise InvalidArgumentError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def as_proto(self) -> TensorShapeProto:
        """The shape as plain data, which ``TensorShape`` takes again."""
        return TensorShapeProto(tuple([-1 if d is None else d for d in self._dims or ()]), self._dims is None)

    def is_compatible_with(self, other: Any) -> bool:
        return compatible(self._dims, as_dims(other))

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raise ShapeError unless one shape could satisfy both."""
        if not self.is_compatible_with(other):
            raise ShapeError(f"Shapes {self} and {as_shape(other)} are incompatible")

    def merge_with(self, other: Any) -> TensorShape:
        """Return what is known when both hold. Raises ShapeError when they contradict."""
        return TensorShape(merge(self._dims, as_dims(other)))

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """Return what is known of a tensor that has the one shape or the other."""
        return TensorShape(common(self._dims, as_dims(other)))

    def concatenate(self, other: Any) -> TensorShape:
        tail = as_dims(other)
        return TensorShape(None if self._dims is None or tail is None else self._dims + tail)

    def assert_has_rank(self, rank: int) -> None:
        """Raise ShapeError when the rank is known and another."""
        if self._dims is not None and len(self._dims) != rank:
            raise ShapeError(f"Shape {self} must have rank {rank}")

    def assert_same_rank(self, other: Any) -> None:
        """Raise ShapeError when both ranks are known and differ."""
        theirs = as_dims(other)
        if self._dims is not None and theirs is not None and len(self._dims) != len(theirs):
            raise ShapeError(f"Shapes {self} and {TensorShape(theirs)} must have the same rank")

    def with_rank(self, rank: int) -> TensorShape:
        """The shape, with as many unknown dims where its rank is unknown. Raises ShapeError when it has another rank."""
        self.assert_has_rank(rank)
        return unknown_shape(rank) if self._dims is None else self

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """The shape itself. Raises ShapeError when its rank is known to be less."""
        if self._dims is not None and len(self._dims) < rank:
            raise ShapeError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """The shape itself. Raises ShapeError when its rank is known to be more."""
        if self._dims is not None and len(self._dims) > rank:
            raise ShapeError(f"Shape {self} must have rank at most {rank}")
        return self

    def __len__(self) -> int:
        if self._dims is None:
            raise InvalidArgumentError("Cannot take the length of Shape with unknown rank.")
        return len(self._dims)

    def __iter__(self) -> Iterator[Any]:
        if self._dims is None:
            raise InvalidArgumentError("Cannot iterate over a shape with unknown rank.")
        return iter([Dimension(d) for d in self._dims])

    def __getitem__(self, key: Any) -> Any:
        if self._dims is not None:
            return TensorShape(self._dims[key]) if isinstance(key, slice) else Dimension(self._dims[key])
        if not isinstance(key, slice):
            return Dimension(None)
        start = key.start or 0
        if key.step is not None or key.stop is None or start < 0 or key.stop < 0:
            return unknown_shape()
        return unknown_shape(max(key.stop - start, 0))

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def __eq__(self, other: object) -> bool:
        try:
            return self._dims == as_dims(other)
        except InvalidArgumentError:
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __bool__(self) -> bool:
        return self._dims is not None

    def __reduce__(self) -> Any:
        return TensorShape, (self._dims,)

    def __repr__(self) -> str:
        return f"TensorShape({None if self._dims is None else [Dimension(d) for d in self._dims]})"

    def __str__(self) -> str:
        if self._dims is None:
            return "<unknown>"
        return f"({show(self._dims)[1:-1].replace(',', ', ')}{',' if len(self._dims) == 1 else ''})"


def as_shape(shape: Any) -> TensorShape:
    """The TensorShape of what stands for a shape."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def as_dimension(value: Any) -> Dimension:
    """The Dimension of a number or None."""
    return Dimension(value)


def unknown_shape(ndims: int | None = None) -> TensorShape:
    """A shape of unknown rank, or of a known one with all dims unknown."""
    return TensorShape(None if ndims is None else [None] * ndims)
