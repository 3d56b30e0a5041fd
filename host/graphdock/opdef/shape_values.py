"""Known values of small integer tensors: what shape inference may know before anything runs.

An op says in its spec (``evaluate: "module:function"``) how its output follows from its inputs, attributes and input shapes; the
function is its integer rule and takes an :class:`IntegerContext`. :class:`KnownIntegers` runs the rules over any graph, so that the
user's graph (at construction) and the plan (again with concrete feeds) share this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from graphdock.contracts.ir import Value
from graphdock.contracts.opdef import SHAPE_ELEMENTS as LIMIT
from graphdock.contracts.opdef import OpDef, resolve
from graphdock.dtypes import DType
from graphdock.errors import InternalError
from graphdock.shape import Dims, Symbol

__all__ = [
    "LIMIT",
    "IntegerContext",
    "Known",
    "KnownIntegers",
    "Origin",
    "cast",
    "const",
    "identity",
    "is_known",
    "known_elements",
    "plan_integers",
    "shape",
    "without_symbols",
]

#: Elements that one memo keeps; a rule that is asked for beyond it runs again.
BUDGET = 1 << 20
#: What the memo counts for an entry besides its elements.
_ENTRY = 4
#: Kinds of dtypes whose elements are tracked: bool, signed, unsigned.
_KINDS = "biu"

#: What is known of a tensor: an int at rank 0, a tuple at rank 1, a tuple of rows at rank 2; None when nothing is. An element that
#: is not an int is unknown.
Known: TypeAlias = Any


class Origin(NamedTuple):
    """Origin of a tensor in a graph: output number ``output`` of ``node``."""

    node: Any
    opdef: OpDef
    attrs: Mapping[str, Any]
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    output: int


#: A node and what makes each of its inputs, None for an input that no rule knows.
_Sourced: TypeAlias = "tuple[Origin, Sequence[Origin | None]]"


class IntegerContext:
    """View of a node that an integer rule has.

    Attributes:
      opdef: the op; ``attrs`` its attributes, complete.
      inputs: number of inputs, list arguments flattened; ``outputs`` number of outputs.
    """

    __slots__ = ("_dims", "_origin", "_seen", "_values", "attrs", "inputs", "opdef", "outputs")

    #: Largest number of elements of a tensor that is tracked; a rule need not make more.
    limit = LIMIT

    def __init__(self, origin: Origin, values: Sequence[Known], dims: Callable[[Any], Dims]) -> None:
        self._origin = origin
        self._values = values
        self._dims = dims
        self._seen: list[Any] = []
        self.opdef = origin.opdef
        self.attrs = origin.attrs
        self.inputs = len(origin.inputs)
        self.outputs = len(origin.outputs)

    def value(self, index: int) -> Known:
        """Return what is known of an input: an int at rank 0, a tuple at rank 1, a tuple of rows at rank 2, None when nothing is.

        An element that is not an int is unknown; a rule may pass it on.
        """
        value = self._values[index]
        self._seen.append(value)
        return value

    def dims(self, index: int) -> Any:
        """Static shape of an input. A dim that is not an int is unknown; None for an unknown rank."""
        dims = self._dims(self._origin.inputs[index])
        self._seen.append(dims)
        return None if isinstance(dims, Symbol) else dims

    def dtype(self, index: int) -> DType:
        """Dtype of an input."""
        found: DType = self._origin.inputs[index].dtype
        return found

    def output_dtype(self, index: int = 0) -> DType:
        """Dtype of an output, in which the rule's result wraps around."""
        found: DType = self._origin.outputs[index].dtype
        return found


class KnownIntegers:
    """The known integers of one graph, each computed once.

    The graph, or one stage of its planning, owns the memo and calls it from one thread at a time; the memo keeps at most
    :data:`BUDGET` elements and goes with its owner.

    Args:
      origin_of: tensor -> how it is made, None for a tensor that nothing in the graph makes (a feed, a parameter).
      dims_of: tensor -> its static shape.
      symbols: whether unknown elements are symbols. Then ``dims_of`` gives extents, and whatever follows from symbols that the
        feeds' shapes decide is such a symbol itself.
    """

    def __init__(
        self,
        origin_of: Callable[[Any], Origin | None],
        dims_of: Callable[[Any], Any],
        budget: int = BUDGET,
        symbols: bool = False,
    ) -> None:
        self._origin_of = origin_of
        self._dims_of = dims_of
        self._budget = budget
        self._symbols = symbols
        self._memo: dict[Any, tuple[Known, ...]] = {}
        self._held = 0
        #: tensor or node -> the nodes whose result may become more known when it does
        self._readers: dict[Any, list[Any]] = {}

    def value(self, tensor: Any) -> Known:
        """Return what is known of a tensor.

        Raises:
          InternalError: an integer rule returned what is not of the form that :data:`Known` says.
        """
        origin = self._tracked(tensor)
        if origin is None:
            return self._opaque(tensor)
        found = self._memo.get(origin.node)
        return (self._compute(origin) if found is None else found)[origin.output]

    def forget(self, tensor: Any) -> None:
        """Let what depends on the static shape of ``tensor``, which has become more known, be computed again when asked for."""
        stack = [tensor]
        while stack:
            for node in self._readers.pop(stack.pop(), ()):
                self._drop(node)
                stack.append(node)

    def _compute(self, root: Origin) -> tuple[Known, ...]:
        """Run the rules that ``root`` needs and that the memo lacks, inputs first."""
        order, ready = self._needed(root)
        readers: dict[Any, int] = {}
        for _, sources in order:
            for node in {s.node for s in sources if s is not None}:
                readers[node] = readers.get(node, 0) + 1
        for origin, sources in order:
            values = [
                self._opaque(t) if s is None else ready[s.node][s.output]
                for t, s in zip(origin.inputs, sources, strict=True)
            ]
            ready[origin.node] = result = _run(origin, values, self._dims_of, self._symbols)
            self._keep(origin, sources, result)
            for node in {s.node for s in sources if s is not None}:
                readers[node] -= 1
                if not readers[node]:
                    del ready[node]  # read for the last time: a long chain holds no more than the memo does
        return ready[root.node]

    def _needed(self, root: Origin) -> tuple[list[_Sourced], dict[Any, tuple[Known, ...]]]:
        """The nodes to evaluate with what makes their inputs, inputs first, and the results that the memo has for such."""
        order: list[_Sourced] = []
        ready: dict[Any, tuple[Known, ...]] = {}
        opened: dict[Any, list[Origin | None]] = {}
        listed: set[Any] = set()
        stack = [root]
        while stack:
            origin = stack[-1]
            if origin.node in opened:
                stack.pop()
                if origin.node not in listed:
                    listed.add(origin.node)
                    order.append((origin, opened[origin.node]))
                continue
            opened[origin.node] = sources = [self._tracked(t) for t in origin.inputs]
            for source in sources:
                if source is None or source.node in opened:
                    continue
                found = self._memo.get(source.node)
                if found is None:
                    stack.append(source)
                else:
                    ready[source.node] = found
        return order, ready

    def _tracked(self, tensor: Any) -> Origin | None:
        """The origin of a tensor whose elements a rule may know."""
        dtype: DType = tensor.dtype
        if dtype.kind not in _KINDS:
            return None
        origin = self._origin_of(tensor)
        return None if origin is None or origin.opdef.evaluate is None else origin

    def _opaque(self, tensor: Any) -> Known:
        """Symbols for the elements of a small tensor that no rule makes, such as a feed; None where there are no symbols."""
        if not self._symbols or tensor.dtype.kind not in _KINDS:
            return None
        found = self._memo.get(tensor)
        if found is None:
            found = self._memo[tensor] = (_unknown(self._dims_of(tensor), False),)
            self._held += _weight(found)
        return found[0]

    def _keep(self, origin: Origin, sources: Sequence[Origin | None], result: tuple[Known, ...]) -> None:
        node = origin.node
        self._memo[node] = result
        self._held += _weight(result)
        while self._held > self._budget and len(self._memo) > 1:
            self._drop(next(iter(self._memo)))
        if all(map(is_known, result)):
            return
        for tensor in origin.inputs:
            if not is_known(self._dims_of(tensor)):
                self._readers.setdefault(tensor, []).append(node)
        for source in sources:
            if source is not None:
                self._readers.setdefault(source.node, []).append(node)

    def _drop(self, node: Any) -> None:
        found = self._memo.pop(node, None)
        if found is not None:
            self._held -= _weight(found)


def plan_integers(symbols: bool = False) -> KnownIntegers:
    """A memo for the values of a plan under construction, for as long as no node's inputs and no shape change.

    Args:
      symbols: take the values' extents, and let unknown elements be symbols.
    """
    return KnownIntegers(_plan_origin, _plan_extent if symbols else _plan_dims, symbols=symbols)


def _plan_origin(value: Value) -> Origin | None:
    node = value.node
    return None if node is None else Origin(node, node.opdef, node.attrs, node.inputs, node.outputs, value.index)


def _plan_dims(value: Value) -> Dims:
    return value.shape


def _plan_extent(value: Value) -> Any:
    return value.extent


def known_elements(array: Any) -> Known:
    """The elements of a small array of integers, as shape rules read them; None of any other, and of None."""
    if array is None or array.ndim > 2 or array.size > LIMIT or array.dtype.kind not in _KINDS:
        return None
    if array.ndim == 2:
        return tuple(map(tuple, array.tolist()))
    return tuple(array.tolist()) if array.ndim else int(array)


def is_known(value: Known) -> bool:
    """Return whether every element is an int."""
    if isinstance(value, tuple):
        return all(isinstance(v, int) or (isinstance(v, tuple) and is_known(v)) for v in value)
    return isinstance(value, int)


def _weight(result: tuple[Known, ...]) -> int:
    return _ENTRY + sum(_count(v) for v in result)


def _count(value: Known) -> int:
    if not isinstance(value, tuple):
        return 1
    return sum(len(v) if isinstance(v, tuple) else 1 for v in value)


def _run(origin: Origin, values: Sequence[Known], dims_of: Callable[[Any], Any], symbols: bool) -> tuple[Known, ...]:
    """The result of a node's rule, one per output, wrapped around in the outputs' dtypes."""
    opdef, outputs = origin.opdef, origin.outputs
    assert opdef.evaluate is not None
    if not any(t.dtype.kind in _KINDS for t in outputs):
        return (None,) * len(outputs)
    ctx = IntegerContext(origin, values, dims_of)
    found = resolve(opdef.evaluate)(ctx)
    parts = found if isinstance(found, list) else [found] if found is not None else [None] * len(outputs)
    if len(parts) != len(outputs):
        raise _broken(opdef, f"{len(parts)} results for {len(outputs)} outputs")
    result = [_wrapped(part, t.dtype, opdef) for part, t in zip(parts, outputs, strict=True)]
    if symbols and not all(map(is_known, result)):
        fed = all(map(_is_fed, ctx._seen))
        result = [_filled(part, fed, dims_of(t)) for part, t in zip(result, outputs, strict=True)]
    return tuple(result)


def _is_fed(value: Any) -> bool:
    """Return whether the feeds' shapes decide every unknown part of a known tensor, or of an extent."""
    if isinstance(value, tuple):
        return all(map(_is_fed, value))
    return isinstance(value, int) or (isinstance(value, Symbol) and value.fed)


def _filled(value: Known, fed: bool, extent: Any) -> Known:
    """The value with a new symbol for each element that has none."""
    if value is None:
        return _unknown(extent, fed)
    if isinstance(value, tuple):
        return tuple([_filled(v, fed, ()) for v in value])
    return value


def _unknown(extent: Any, fed: bool) -> Known:
    """Symbols for the elements of a scalar or a vector of known length."""
    if extent == ():
        return Symbol(fed, dim=False)
    one = isinstance(extent, tuple) and len(extent) == 1 and isinstance(extent[0], int) and extent[0] <= LIMIT
    return tuple([Symbol(fed, dim=False) for _ in range(extent[0])]) if one else None


def _wrapped(value: Known, dtype: DType, opdef: OpDef) -> Known:
    if value is None or dtype.kind not in _KINDS:
        return None
    if not isinstance(value, tuple):
        return _element(value, dtype, opdef)
    if _count(value) > LIMIT:
        return None
    return tuple(
        [
            tuple([_element(e, dtype, opdef) for e in v]) if isinstance(v, tuple) else _element(v, dtype, opdef)
            for v in value
        ]
    )


def _element(value: Any, dtype: DType, opdef: OpDef) -> Any:
    if value is None or isinstance(value, Symbol):
        return value
    if not isinstance(value, int):
        raise _broken(opdef, f"the element {value!r}")
    if dtype.kind == "b":
        return int(value != 0)
    bits = 8 * dtype.size
    low = -(1 << bits - 1) if dtype.kind == "i" else 0
    return int(value) if low <= value < low + (1 << bits) else (value - low) % (1 << bits) + low


def _broken(opdef: OpDef, what: str) -> InternalError:
    owner = f" of package {opdef.package}" if opdef.package else ""
    return InternalError(
        f"the integer rule {opdef.evaluate} of {opdef.name}{owner} returned {what}",
        expected="an int, a tuple of ints or of rows (None for an unknown element), or None; a list of these for several outputs",
    )


def without_symbols(value: Known) -> Known:
    """The value, of whose elements those are None that are not ints."""
    if isinstance(value, tuple):
        return tuple(map(without_symbols, value))
    return value if isinstance(value, int) else None


# Integer rules of the host's structural ops.


def const(ctx: IntegerContext) -> Known:
    """The elements, up to rank 2."""
    return known_elements(ctx.attrs["value"])


def shape(ctx: IntegerContext) -> Known:
    """The dims; nothing where one does not fit the dtype, which the kernel refuses."""
    dims = ctx.dims(0)
    top = (1 << 8 * ctx.output_dtype().size - 1) - 1
    return None if dims is None or any(isinstance(d, int) and d > top for d in dims) else dims


def identity(ctx: IntegerContext) -> Known:
    """The input itself."""
    return ctx.value(0)


def cast(ctx: IntegerContext) -> Known:
    """The input, which wraps around in the output's dtype; unknown elements may, where it is the narrower one."""
    value, given, made = ctx.value(0), ctx.dtype(0), ctx.output_dtype()
    return value if given.kind == made.kind and given.size <= made.size else without_symbols(value)
