"""Context of shape functions, at construction and in a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphdock.contracts.opdef import OpDef
from graphdock.dtypes import DType, as_dtype
from graphdock.errors import ShapeError
from graphdock.opdef.assumptions import Assumptions
from graphdock.opdef.shape_values import Known, without_symbols
from graphdock.shape import Dims, Symbol, plain, show

__all__ = ["ShapeContext", "symbolic"]


def symbolic(function: Callable[[ShapeContext], list[Any]]) -> Callable[[ShapeContext], list[Any]]:
    """Marks a shape function that knows symbols.

    In a plan, unknown dims and elements reach it as :class:`graphdock.shape.Symbol`, not as None, and it may pass them on. It
    promises to say what it could not check: dims that have to agree by :meth:`ShapeContext.equal` and its kin, anything else by
    :meth:`ShapeContext.unproven`. What it asks of elements that only a step knows is the kernel's to check.

    A function without the mark sees None; what it made of that is inferred again, once for each new set of feed shapes or before
    the node runs.
    """
    function.symbolic = True  # type: ignore[attr-defined]
    return function


class ShapeContext:
    """What a shape function sees.

    Attributes:
      opdef: the op; ``attrs`` its attributes, complete.
    """

    __slots__ = ("_facts", "_known", "_shapes", "_symbols", "attrs", "opdef")

    def __init__(
        self,
        opdef: OpDef,
        attrs: Mapping[str, Any],
        shapes: Sequence[Sequence[Any]],
        known: Callable[[int], Known],
        facts: Assumptions | None = None,
        symbols: bool = False,
    ) -> None:
        self.opdef = opdef
        self.attrs = attrs
        self._shapes = shapes
        self._known = known
        self._facts = facts
        self._symbols = symbols

    def _index(self, name: str) -> int:
        for i, arg in enumerate(self.opdef.inputs):
            if arg.name == name:
                return i
        raise KeyError(name)

    def shape(self, name: str) -> Dims:
        """Static shape of an input; None also for an absent optional one."""
        found = self._shapes[self._index(name)]
        return self._seen(found[0]) if found else None

    def shapes(self, name: str) -> list[Dims]:
        """Static shapes of a list input's elements."""
        return [self._seen(s) for s in self._shapes[self._index(name)]]

    def _seen(self, extent: Any) -> Any:
        if isinstance(extent, Symbol):
            self.unproven(extent)
            return None
        return extent if self._symbols else plain(extent)

    def dtype(self, name: str) -> DType:
        """The dtype bound to a type variable."""
        return as_dtype(self.attrs[name])

    def values(self, name: str, element: int = 0) -> Known:
        """What is known of a small integer input; None when nothing is.

        An int at rank 0, a tuple at rank 1 with None for each unknown element, a tuple of rows at rank 2.
        """
        index = self._index(name)
        if element >= len(self._shapes[index]):
            return None
        value = self._known(sum(len(s) for s in self._shapes[:index]) + element)
        if self._facts is not None:
            self._facts.read(value)
        return value if self._symbols else without_symbols(value)

    def equal(self, a: Any, b: Any, message: str) -> Any:
        """The dim that two are known or required to be: the one that says more.

        Raises:
          ShapeError: both are known, and differ.
        """
        if isinstance(a, int) and isinstance(b, int):
            if a != b:
                raise self.fail(message)
            return a
        if a is None or b is None or self._facts is None:
            if self._facts is not None:
                self._facts.unproven()
            return b if a is None else a
        return self._facts.equal(a, b)

    def one_or_equal(self, a: Any, b: Any, message: str) -> None:
        """Require that dim ``a`` is 1 or equal to dim ``b``.

        Raises:
          ShapeError: both are known, and it is neither.
        """
        if isinstance(a, int) and isinstance(b, int):
            if a not in (1, b):
                raise self.fail(message)
        elif self._facts is not None and a != 1:
            if a is None or b is None:
                self._facts.unproven()
            else:
                self._facts.one_or_equal(a, b)

    def at_least(self, dim: Any, least: int, message: str) -> None:
        """Require a dim to have at least this size.

        Raises:
          ShapeError: it is known, and smaller.
        """
        if isinstance(dim, int):
            if dim < least:
                raise self.fail(message)
        elif self._facts is not None:
            if dim is None:
                self._facts.unproven()
            else:
                self._facts.at_least(dim, least)

    def derived(self, what: str, *parts: Any) -> Any:
        """The dim that some computation over ints and unknown dims yields; the same one for the same parts in the same order.

        None where no symbols are kept, or a part is None.
        """
        return None if self._facts is None or None in parts else self._facts.derived(what, *parts)

    def canonical(self, dim: Any) -> Any:
        """The dim itself, or the one symbol that stands for all that are known to be the same."""
        return dim if self._facts is None else self._facts.find(dim)

    def unproven(self, *dims: Any) -> None:
        """Say that a check needs more than is known of these dims; without arguments, of anything about the node."""
        if self._facts is not None:
            self._facts.unproven(*dims)

    def fail(self, message: str) -> ShapeError:
        """The error to raise: the message with the op's type and its input shapes."""
        args = ", ".join(
            f"{arg.name} {' '.join(show(plain(s)) for s in shapes)}"
            for arg, shapes in zip(self.opdef.inputs, self._shapes, strict=True)
        )
        return ShapeError(
            f"{self.opdef.name}: {message} (input shapes: {args})" if args else f"{self.opdef.name}: {message}"
        )
