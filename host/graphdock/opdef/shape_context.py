"""Context of shape functions, at construction and in a plan; and the assumptions of a plan about dims that it does not know.

A plan for any shape must refuse whatever a plan for one shape refuses. While such a plan is translated, its unknown dims are
symbols (:class:`graphdock.shape.Symbol`). Where a rule needs two dims to agree and inference cannot prove it, the rule asks here,
and goes on as if they did. What was assumed about the feeds alone becomes the plan's conditions
(:mod:`graphdock.contracts.ir`), checked once for each new set of feed shapes; a node that assumed something about symbols
which only the step decides is checked before it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from graphdock.contracts.ir import Conditions
from graphdock.contracts.opdef import OpDef
from graphdock.dtypes import DType, as_dtype
from graphdock.errors import ShapeError
from graphdock.opdef.shape_values import Known, without_symbols
from graphdock.shape import Dims, Extent, Symbol, broadcast, plain, show

__all__ = ["Assumptions", "ShapeContext", "symbolic", "symbols"]


class Assumptions:
    """The assumptions of one plan, collected node by node.

    Attributes:
      late: whether the node being inferred assumed something that only the step decides.
    """

    def __init__(self) -> None:
        self.late = False
        self._dims: list[Symbol] = []
        self._elements: list[Symbol] = []
        self._same: dict[Symbol, Symbol] = {}
        self._made: dict[Any, Symbol] = {}
        self._equal: dict[tuple[Any, Any], None] = {}
        self._one_or_equal: dict[tuple[Any, Any], None] = {}
        self._at_least: dict[Any, int] = {}
        self._proven = True

    def conditions(self) -> Conditions:
        """Return what was assumed of the feeds."""
        return Conditions(tuple(self._equal), tuple(self._one_or_equal), tuple(self._at_least.items()), self._proven)

    def canonical(self, extent: Extent | None) -> Extent | None:
        """An extent with one symbol for all dims that were assumed to be the same."""
        if not self._same or extent is None:
            return extent
        return tuple(map(self.find, extent)) if isinstance(extent, tuple) else self.find(extent)

    # -- one node

    def begin(self, extents: Iterable[Extent | None]) -> None:
        """Turn to a node with these inputs."""
        self.late = False
        self._dims, self._elements = symbols(extents), []

    def read(self, value: Any) -> None:
        """The node's rule also looks at elements, some of which may be unknown."""
        self._elements += [_LATE if v is None else v for v in _unknown(value)]

    @property
    def open(self) -> bool:
        """Return whether any dim of the node's inputs is unknown."""
        return bool(self._dims)

    @property
    def fed(self) -> bool:
        """Return whether the feeds' shapes decide all that the node's rule looks at, and so the shapes that it infers."""
        return all(t.fed for t in (*self._dims, *self._elements))

    def unproven(self, *dims: Any) -> None:
        """The rule could not check something about these dims.

        By default: about any dim that it looks at, or any element that the feeds' shapes decide. A kernel checks other elements.
        """
        for symbol in symbols([dims]) if dims else [*self._dims, *(e for e in self._elements if e.fed)]:
            if symbol.fed:
                self._proven = False
            else:
                self.late = True

    def unknowing(self) -> None:
        """The rule knows no symbols: nothing that it made of unknown dims and elements is proven."""
        if self._dims or self._elements:
            self.unproven(*self._dims, *self._elements)

    # -- dims

    def find(self, dim: Any) -> Any:
        """The one that stands for all symbols that were assumed to be the same."""
        last = dim
        while last in self._same:
            last = self._same[last]
        while dim is not last:
            self._same[dim], dim = last, self._same[dim]
        return last

    def is_same(self, a: Any, b: Any) -> bool:
        """Return whether two dims or extents are the same without further assumption."""
        if isinstance(a, tuple) and isinstance(b, tuple):
            return len(a) == len(b) and all(self.find(x) == self.find(y) for x, y in zip(a, b, strict=True))
        return bool(self.find(a) == self.find(b))

    def equal(self, a: Any, b: Any) -> Any:
        """Assume that two dims, at least one of them a symbol, are the same; returns the one that says more."""
        a, b = self.find(a), self.find(b)
        if a == b:
            return a
        known = b if isinstance(b, int) or (isinstance(a, Symbol) and not a.fed) else a
        if all(d.fed for d in (a, b) if isinstance(d, Symbol)):
            if all(isinstance(d, int) or d.feed is not None for d in (a, b)):
                self._equal[_ref(a), _ref(b)] = None
            else:
                self._proven = False
            if isinstance(a, Symbol) and isinstance(b, Symbol):
                self._same[a if known is b else b] = known
        else:
            self.late = True
        return known

    def one_or_equal(self, a: Any, b: Any) -> None:
        """Assume that a dim, or one that is a symbol, is 1 or another one."""
        a, b = self.find(a), self.find(b)
        if a in (1, b):
            return
        if all(isinstance(d, int) or d.feed is not None for d in (a, b)):
            self._one_or_equal[_ref(a), _ref(b)] = None
        else:
            self.unproven(a, b)

    def at_least(self, dim: Symbol, least: int) -> None:
        """Assume that a dim has at least this size."""
        dim = self.find(dim)
        if least <= 0 and dim.dim:
            return
        if dim.feed is not None:
            self._at_least[dim.feed] = max(least, self._at_least.get(dim.feed, 0))
        else:
            self.unproven(dim)

    def broadcast(self, *shapes: Any) -> Any:
        """NumPy's broadcasting over extents; None where the rank is unknown. Dims that may differ are assumed not to.

        Raises:
          ShapeError: two known dims clash.
        """
        ranked = [s for s in shapes if s != ()]
        if any(s is None or isinstance(s, Symbol) for s in ranked):
            if all(isinstance(s, Symbol) and self.is_same(s, ranked[0]) for s in ranked):
                return ranked[0]
            self.unproven()
            return None
        rank = max(map(len, ranked), default=0)
        out = [
            self._joined({self.find(s[axis]) for s in ranked if -axis <= len(s)}, shapes) for axis in range(-rank, 0)
        ]
        return tuple(out)

    def _joined(self, dims: set[Any], shapes: Sequence[Any]) -> Any:
        """The dim that all of ``dims`` broadcast to."""
        dims.discard(1)
        known = [d for d in dims if isinstance(d, int)]
        if len(known) > 1:
            broadcast(*map(plain, shapes))
            raise ShapeError("shapes " + " and ".join(show(plain(s)) for s in shapes) + " cannot be broadcast together")
        open_dims = sorted(
            (d for d in dims if isinstance(d, Symbol)), key=lambda d: (d.feed is None, d.feed or (-1, -1))
        )
        for d in open_dims if known else ():
            self.one_or_equal(d, known[0])
        if known or not open_dims:
            return known[0] if known else 1
        first = open_dims[0]
        for d in open_dims[1:]:
            if d.feed is not None:
                first = self.equal(first, d)
        rest = [d for d in open_dims if d.feed is None and d is not first]
        if not rest:
            return first
        # one of them may be 1 after all, and only the rule over actual shapes tells
        if all(d.fed for d in rest):
            self._proven = False
        else:
            self.late = True
        return self.derived("broadcast", *sorted([first, *rest], key=id))

    def derived(self, what: str, *parts: Any) -> Symbol:
        """The symbol of what a computation over ints and symbols yields: the same one for the same parts."""
        key = (what, *map(self.find, parts))
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = Symbol(all(d.fed for d in key if isinstance(d, Symbol)))
        return found


_LATE = Symbol(False)


def symbols(extents: Iterable[Any]) -> list[Symbol]:
    """Every symbol of some extents."""
    found: list[Symbol] = []
    for extent in extents:
        for dim in extent if isinstance(extent, tuple) else (extent,):
            if isinstance(dim, Symbol):
                found.append(dim)
    return found


def _unknown(value: Any) -> list[Any]:
    """The elements of a known integer tensor that are not known; None for a tensor of which nothing is."""
    if isinstance(value, tuple):
        flat = [e for v in value for e in (v if isinstance(v, tuple) else (v,))]
        return [e for e in flat if not isinstance(e, int)]
    return [] if isinstance(value, int) else [value]


def _ref(dim: Any) -> Any:
    return dim if isinstance(dim, int) else dim.feed


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
    """View of a node that a shape function has.

    Attributes:
      opdef: the op; ``attrs`` its attributes, complete.
      building: the node is being added to a graph, and its shapes are those of every step.
    """

    __slots__ = ("_facts", "_known", "_shapes", "_symbols", "attrs", "building", "opdef")

    def __init__(
        self,
        opdef: OpDef,
        attrs: Mapping[str, Any],
        shapes: Sequence[Sequence[Any]],
        known: Callable[[int], Known],
        facts: Assumptions | None = None,
        symbols: bool = False,
        building: bool = False,
    ) -> None:
        self.opdef = opdef
        self.building = building
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
        """Return what is known of a small integer input; None when nothing is.

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
