"""Fetches and feeds: nested structures of handles and names, and flat lists. A key of a feed_dict may be a nested tuple.

What stands for several tensors, such as an IndexedSlices, has ``_as_fetches()``: a structure to fetch, and a function of
what was fetched, and ``_as_feeds(value)``, which returns a dict of tensors to values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from graphdock.dtypes import DType, as_dtype
from graphdock.errors import (
    ArgumentTypeError,
    DTypeError,
    GraphdockError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    ResourceExhaustedError,
    ShapeError,
    format_error,
    prefixed,
)
from graphdock.graph.graph import Graph
from graphdock.graph.operation import Operation
from graphdock.graph.site import capture, describe
from graphdock.graph.tensor import Tensor
from graphdock.nest import flatten, flatten_up_to
from graphdock.ops.convert import check_room, keeps_all, narrowed
from graphdock.shape import Dims, compatible, show
from graphdock.variables.variable import Variable

__all__ = ["Feed", "FetchPlan", "convert_feed", "single_tensors"]

Pack = Callable[[Sequence[Any]], Any]

#: Kind of a dtype without arrays -> what a tensor of it is, and what to fetch instead.
_NO_ARRAY = {
    "R": ("a resource handle", "fetch the variable itself"),
    "V": (
        "what a loop or a branch keeps for its gradient",
        "fetch the loop's own results, or collect values in a loop variable",
    ),
}
_PREVENTED = "the program said so: Graph.prevent_feeding, Graph.prevent_fetching"


class FetchPlan:
    """A fetch structure made flat.

    Attributes:
      tensors: what the step must return, each once. ``operations``: what it must run, each once.
      pack: the step's results -> a structure like the caller's, None in place of operations.
    """

    def __init__(self, graph: Graph, fetches: Any) -> None:
        self.tensors: list[Tensor] = []
        self._index: dict[Tensor, int] = {}
        self._run: dict[Operation, None] = {}
        self.pack = self._visit(graph, fetches)
        self.operations: list[Operation] = list(self._run)

    def _visit(self, graph: Graph, fetch: Any) -> Pack:
        if isinstance(fetch, (list, tuple)):
            parts = [self._visit(graph, f) for f in fetch]
            if isinstance(fetch, list):
                return lambda r: [p(r) for p in parts]
            if hasattr(fetch, "_fields"):
                kind = type(fetch)
                return lambda r: kind(*[p(r) for p in parts])
            return lambda r: tuple([p(r) for p in parts])
        if isinstance(fetch, Mapping):
            items = [(k, self._visit(graph, v)) for k, v in fetch.items()]
            if type(fetch) is dict or not isinstance(fetch, MutableMapping):
                return lambda r: {k: p(r) for k, p in items}
            made = type(fetch)
            return lambda r: _filled(made(), [(k, p(r)) for k, p in items])
        if hasattr(fetch, "_as_fetches"):
            inner, rebuilt = fetch._as_fetches()
            pack = self._visit(graph, inner)
            return lambda r: rebuilt(pack(r))
        if fetch is None:
            raise ArgumentTypeError(
                "None cannot be fetched",
                site=describe(capture()),
                hint="fetch a Tensor, an Operation or a Variable; did a function return nothing?",
            )
        try:
            element = graph.as_graph_element(fetch)
        except (InvalidArgumentError, NotFoundError) as error:
            raise _refused("fetch", fetch, error) from None
        op = element if isinstance(element, Operation) else element.op
        if op in graph._unfetchable:
            raise InvalidArgumentError(
                f"cannot fetch {element.name}: it has been marked as not fetchable", site=op.site, hint=_PREVENTED
            )
        if isinstance(element, Operation):
            self._run[element] = None
            return _none
        if element.dtype.kind in _NO_ARRAY:
            what, hint = _NO_ARRAY[element.dtype.kind]
            raise InvalidArgumentError(
                f"cannot fetch {element.name}: it is {what}", op=element.op.name, site=element.op.site, hint=hint
            )
        index = self._index.setdefault(element, len(self.tensors))
        if index == len(self.tensors):
            self.tensors.append(element)
        return lambda r: r[index]


def _refused(what: str, given: Any, error: GraphdockError) -> GraphdockError:
    """The error of a fetch or feed that names nothing of the graph, with the user's line: the operation's, or the call's."""
    return prefixed(f"cannot {what} {given!r}", error, describe(capture()))


def _filled(mapping: Any, items: list[tuple[Any, Any]]) -> Any:
    """A mapping of the caller's own class, such as an OrderedDict, with what was fetched."""
    mapping.update(items)
    return mapping


def _none(results: Sequence[Any]) -> None:
    return None


def single_tensors(feed_dict: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """A feed_dict in which each key that stands for several tensors is replaced by them: a nested tuple, such as the state of
    a recurrent network, whose value has the same structure, or an IndexedSlices.

    Raises:
      InvalidArgumentError: a value does not have its key's structure, or one tensor is fed twice.
    """
    if not any(isinstance(key, tuple) or hasattr(key, "_as_feeds") for key in feed_dict):
        return feed_dict
    single: dict[Any, Any] = {}
    for key, value in feed_dict.items():
        for tensor, fed in _pairs(key, value):
            if tensor in single:
                raise InvalidArgumentError(
                    "feed_dict feeds one tensor twice", got=getattr(tensor, "name", tensor), site=describe(capture())
                )
            single[tensor] = fed
    return single


def _pairs(key: Any, value: Any) -> Iterable[tuple[Any, Any]]:
    """Tensors and the values to feed them, for one entry of a feed_dict."""
    if hasattr(key, "_as_feeds"):
        fed: Mapping[Any, Any] = key._as_feeds(value)
        return fed.items()
    if not isinstance(key, tuple):
        return [(key, value)]
    leaves = flatten(key)
    names = ", ".join(str(getattr(leaf, "name", leaf)) for leaf in leaves)
    values = flatten_up_to(key, value, f"the value fed to ({names})", "what it is fed to")
    return [pair for leaf, one in zip(leaves, values, strict=True) for pair in _pairs(leaf, one)]


class Feed:
    """One fed tensor, with what the quick check of a feed compares."""

    __slots__ = ("dtype", "np", "ready", "tensor")

    def __init__(self, graph: Graph, key: Any) -> None:
        try:
            tensor = graph.as_graph_element(key, allow_operation=False)
        except (InvalidArgumentError, NotFoundError) as error:
            raise _refused("feed", key, error) from None
        if tensor in graph._unfeedable:
            raise InvalidArgumentError(
                f"cannot feed {tensor.name}: it may not be fed", site=tensor.op.site, hint=_PREVENTED
            )
        if tensor.dtype.kind in _NO_ARRAY:
            raise InvalidArgumentError(
                f"cannot feed {tensor.name}: it is {_NO_ARRAY[tensor.dtype.kind][0]}",
                op=tensor.op.name,
                site=tensor.op.site,
            )
        self.tensor: Tensor = tensor
        self.dtype: DType = tensor.dtype
        self.np = tensor.dtype.np
        #: NumPy's dtype of arrays that are fed as they are; None where the elements have to be looked at.
        self.ready = None if tensor.dtype.kind == "S" else self.np

    @property
    def dims(self) -> Dims:
        """The tensor's static shape, which ``set_shape`` may have made more precise meanwhile."""
        return self.tensor._dims


def convert_feed(feed: Feed, value: Any) -> Any:
    """A contiguous array of the tensor's dtype, checked against its static shape.

    Values are cast as NumPy's ``same_kind`` allows: within a kind (float64 feeds float32) and upwards (ints feed floats); downwards
    where nothing is lost: whole floats feed integers, 0 and 1 feed bools. Integers are range-checked.

    Raises:
      DTypeError, OutOfRangeError, ShapeError: the value does not fit, with the tensor's name and the user's line.
    """
    kind = type(value)
    quick = (
        kind is float
        and feed.dtype.is_floating
        or (kind is int and feed.dtype.name == "int32" and -(2**31) <= value < 2**31)
    )
    if quick and feed.dims in ((), None):
        return np.array(value, feed.np)
    if kind is np.ndarray and feed.dims == value.shape and value.dtype.kind == "f" == feed.np.kind:
        try:
            return value.astype(feed.np, "C")  # the common case: a float64 batch, as the seeds feed
        except (FloatingPointError, MemoryError):
            pass  # np.seterr asks for the former; what converts slowly does not, and says what has no memory
    try:
        return _convert(feed, value)
    except (InvalidArgumentError, OutOfRangeError) as error:
        error.op, error.site = feed.tensor.op.name, feed.tensor.op.site
        raise
    except MemoryError as error:
        raise ResourceExhaustedError(
            f"there is no memory for the value fed to {feed.tensor.name}: {error}",
            op=feed.tensor.op.name,
            site=feed.tensor.op.site,
        ) from error


def _convert(feed: Feed, value: Any) -> Any:
    tensor, dtype = feed.tensor, feed.dtype
    if isinstance(value, (Tensor, Variable)):
        kind = "tensor" if isinstance(value, Tensor) else "variable"
        raise ArgumentTypeError(
            f"{tensor.name} is fed the {kind} {value.name}",
            expected="a number, a list or an array",
            hint="fetch it first, and feed what that returns",
        )
    if hasattr(type(value), "__dlpack__") and not isinstance(value, (np.ndarray, np.generic)):
        from graphdock.ops.dlpack import from_dlpack

        value = from_dlpack(value)
    try:
        array = np.asarray(value)
    except Exception as error:  # noqa: BLE001 - whatever the value's own __array__ raises
        kind = type(value).__name__
        raise InvalidArgumentError(
            f"the value fed to {tensor.name} is not an array but a {kind}: {format_error(error)}"
        ) from error
    check_room(array, dtype)
    if array.dtype is not feed.np or dtype.kind == "S":
        if dtype.kind == "S":
            from graphdock.ops.convert import make_array

            array, _ = make_array(value, dtype)
        elif array.dtype != feed.np:
            array = _cast(feed, array, value)
    if not compatible(feed.dims, array.shape):
        raise ShapeError(
            f"the value fed to {tensor.name} has the wrong shape", expected=show(feed.dims), got=show(array.shape)
        )
    if not array.flags.c_contiguous or not array.flags.aligned:
        array = np.array(array, order="C", copy=True)
    return array


_ORDER = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def _wrong_dtype(feed: Feed, got: str) -> DTypeError:
    return DTypeError(f"the value fed to {feed.tensor.name} has the wrong dtype", expected=feed.dtype.name, got=got)


def _cast(feed: Feed, array: Any, value: Any) -> Any:
    dtype, name = feed.dtype, feed.tensor.name
    if array.dtype.kind not in "biufcV" or array.dtype.hasobject:
        raise _wrong_dtype(feed, "text" if array.dtype.kind in "US" else f"{array.dtype}")
    array = narrowed(array)
    source = as_dtype(array.dtype)
    empty = array.size == 0 and not isinstance(value, np.ndarray)
    if _ORDER[source.kind] > _ORDER[dtype.kind] and not empty and not keeps_all(array, dtype):
        raise _wrong_dtype(feed, source.name)
    if dtype.is_integer and array.size:
        low, high = int(array.min()), int(array.max())
        if low < dtype.min or high > dtype.max:
            raise OutOfRangeError(
                f"the value fed to {name} does not fit into {dtype.name}",
                expected=f"{dtype.min} to {dtype.max}",
                got=f"{low} to {high}",
            )
    with np.errstate(all="ignore"):  # as in a step: what overflows is infinite
        return array.astype(dtype.np)
