"""The host's own public ops, where a wrapper needs more than its spec says; and the scopes of the default graph.

Python operators on tensors are dispatched to the wrappers that op specs name. The host itself knows no Add.
"""

from __future__ import annotations

import contextlib
import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, ValuesView
from contextlib import AbstractContextManager
from typing import Any, overload

import numpy as np

from graphdock.device_name import DeviceSpec
from graphdock.dtypes import DType, as_dtype, float32, int32
from graphdock.errors import ArgumentTypeError, GraphdockError, InvalidArgumentError, UnknownOpError
from graphdock.graph.body import BodyGraph
from graphdock.graph.graph import get_default_graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.ops.apply import apply_op
from graphdock.ops.convert import constant_of, convert_to_tensor
from graphdock.shape import as_dims, size
from graphdock.typing import DTypeLike, ShapeLike, TensorLike

__all__ = [
    "Assert",
    "Print",
    "apply_binary",
    "apply_operator",
    "apply_reflected",
    "cast",
    "colocate_with",
    "container",
    "control_dependencies",
    "device",
    "group",
    "init_scope",
    "name_scope",
    "ones_like",
    "placeholder",
    "placeholder_with_default",
    "py_func",
    "shape",
    "tuple_",
    "zeros_like",
]


def placeholder(dtype: DTypeLike = float32, shape: ShapeLike = None, name: str | None = None) -> Tensor:
    """A tensor that every step which needs it must feed.

    Args:
      dtype: its dtype; float32 when nothing is said, as the seeds' listing does.
      shape: its static shape, with None for unknown dims; None for an unknown rank.
    """
    return apply_op("Placeholder", name=name, dtype=as_dtype(dtype), shape=as_dims(shape))  # type: ignore[no-any-return]


def placeholder_with_default(input: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """The tensor ``input``, unless a step feeds another one of the given static shape."""
    return apply_op("PlaceholderWithDefault", name=name, input=input, shape=as_dims(shape))  # type: ignore[no-any-return]


def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """``x`` in another dtype; ``x`` itself when it has that dtype. Of a SparseTensor or IndexedSlices the values are cast."""
    wanted = as_dtype(dtype)
    with_values = getattr(x, "_with_values", None)
    if with_values is not None:
        return with_values(lambda values: cast(values, wanted, name))  # type: ignore[no-any-return]
    tensor = convert_to_tensor(x)
    if tensor.dtype is wanted:
        return tensor
    return apply_op("Cast", name=name, x=tensor, DstT=wanted)  # type: ignore[no-any-return]


def shape(input: TensorLike, name: str | None = None, out_type: DTypeLike = int32) -> Tensor:
    """The shape as a 1-D integer tensor; a constant where it is known statically.

    A dim that ``out_type`` does not hold is an InvalidArgumentError, at the latest when the step runs.
    """
    dtype = as_dtype(out_type)
    if hasattr(input, "_shape_tensor"):  # a SparseTensor holds it
        return cast(input._shape_tensor(), dtype, name or "Shape")
    tensor = convert_to_tensor(input)
    dims = tensor._dims
    if dims is not None and None not in dims:
        if any(d is not None and d > dtype.max for d in dims):
            raise InvalidArgumentError(
                f"the shape {list(dims)} has a dim that {dtype.name} does not hold", hint="use out_type=tf.int64"
            )
        return constant_of(np.array(dims, dtype.np), dtype, name or "Shape")
    return apply_op("Shape", name=name, input=tensor, out_type=dtype)  # type: ignore[no-any-return]


_SMALL = 1024


def _has_array(dims: Any) -> bool:
    """Return whether NumPy has arrays of this shape: of at most 64 axes, and of a size that could be addressed if no dim were 0."""
    return len(dims) <= 64 and math.prod(d or 1 for d in dims) < 2**59


def _like(tensor: Any, dtype: Any, name: str, fill: int, op: str) -> Tensor:
    if not fill and hasattr(tensor, "_zeros"):
        return tensor._zeros(dtype, name)  # type: ignore[no-any-return]
    x = convert_to_tensor(tensor)
    wanted: DType = x.dtype if dtype is None else as_dtype(dtype)
    dims = x._dims
    count = size(dims)
    if count is not None and count <= _SMALL and wanted.kind in "biufc" and _has_array(dims):
        return constant_of(np.full(dims, fill, wanted.np), wanted, name)
    if "string" in (x.dtype.name, wanted.name) and not (x.dtype is wanted or (fill and wanted.name == "string")):
        value = "" if wanted.name == "string" else np.array(fill, wanted.np)
        return apply_op("Fill", name=name, dims=shape(x), value=convert_to_tensor(value, wanted))  # type: ignore[no-any-return]
    if fill and x.dtype.is_bool:
        x = cast(x, "uint8")  # OnesLike is of numbers
    made: Tensor = apply_op(op, name=name, x=x)
    return cast(made, wanted)


def zeros_like(
    tensor: TensorLike, dtype: DTypeLike | None = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Zeros of the shape of ``tensor``, in its dtype or another; a constant where the shape is known and small. Of a SparseTensor
    they are dense."""
    return _like(tensor, dtype, name or "zeros_like", 0, "ZerosLike")


def ones_like(
    tensor: TensorLike, dtype: DTypeLike | None = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Ones of the shape of ``tensor``, in its dtype or another; a constant where the shape is known and small."""
    return _like(tensor, dtype, name or "ones_like", 1, "OnesLike")


def group(*inputs: Any, name: str | None = None) -> Operation:
    """An operation that is done when all ``inputs`` are: operations, tensors, variables' updates, lists and dicts of them."""
    flat: list[Any] = []
    stack = list(reversed(inputs))
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            item = item.values()
        if isinstance(item, (list, tuple, ValuesView)):
            stack.extend(reversed(list(item)))
        else:
            flat.append(item)
    with get_default_graph().control_dependencies(flat):
        op = apply_op("NoOp", name=name or "group_deps")
    assert isinstance(op, Operation)
    return op


def tuple_(tensors: Iterable[Any], name: str | None = None, control_inputs: Sequence[Any] | None = None) -> list[Any]:
    """The same tensors, each ready only when all of them (and ``control_inputs``) are."""
    tensors = list(tensors)
    real = [t for t in tensors if t is not None]
    with get_default_graph().name_scope(name or "tuple"):
        gate = group(*real, *(control_inputs or ()))
        with get_default_graph().control_dependencies([gate]):
            return [None if t is None else t._mapped(_passed) if hasattr(t, "_mapped") else _passed(t) for t in tensors]


def _passed(tensor: Any) -> Tensor:
    return apply_op("Identity", name="control_dependency", input=tensor)  # type: ignore[no-any-return]


@overload
def py_func(
    func: Callable[..., Any],
    inp: Sequence[TensorLike],
    Tout: DTypeLike,
    stateful: bool = True,
    name: str | None = None,
) -> Tensor: ...
@overload
def py_func(
    func: Callable[..., Any],
    inp: Sequence[TensorLike],
    Tout: list[DTypeLike] | tuple[DTypeLike, ...],
    stateful: bool = True,
    name: str | None = None,
) -> list[Tensor]: ...
def py_func(
    func: Callable[..., Any], inp: Sequence[Any], Tout: Any, stateful: bool = True, name: str | None = None
) -> Any:
    """Call a Python function on NumPy arrays inside a step.

    Args:
      func: takes one array per input, returns one array (or a list of them) of the dtypes ``Tout``.
      inp: its arguments. Tout: a dtype or a list of dtypes.

    Returns:
      A tensor, or a list when ``Tout`` is one, or the operation when that is empty. Shapes are unknown; ``set_shape`` says more.

    What it returns must have the dtypes ``Tout``; text becomes bytes in UTF-8. What it raises ends the step:
    ValueError and TypeError with InvalidArgumentError, StopIteration with OutOfRangeError, MemoryError with ResourceExhaustedError,
    NotImplementedError with UnimplementedError, all else with UnknownError, whose ``__cause__`` is the exception itself.
    """
    if not callable(func):
        raise ArgumentTypeError("py_func: func is of the wrong type", expected="a function", got=repr(func))
    many = isinstance(Tout, (list, tuple))
    types = tuple(as_dtype(t) for t in (Tout if many else [Tout]))
    graph = get_default_graph()
    with graph._lock:
        outputs: Any = apply_op("PyFunc", name=name, input=list(inp), Tout=types, token=func)
        if not types:
            return graph._ops[-1]
    return outputs if many else outputs[0]


def Assert(
    condition: TensorLike, data: Sequence[TensorLike], summarize: int | None = None, name: str | None = None
) -> Operation:
    """An operation that fails with InvalidArgumentError, printing ``data``, unless ``condition`` holds."""
    op = apply_op("Assert", name=name, condition=condition, data=list(data), summarize=summarize or 3)
    assert isinstance(op, Operation)
    return op


def Print(
    input_: TensorLike,
    data: Sequence[TensorLike],
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """``input_``, printing ``message`` and ``data`` to standard error when it is computed.

    Args:
      first_n: print the first so many times only, counted in each plan of a session; default: always.
      summarize: elements of each tensor to print; default: 3.
    """
    if not isinstance(data, (list, tuple)):
        raise InvalidArgumentError("Print: data must be a list of tensors", got=repr(data))
    return apply_op(  # type: ignore[no-any-return]
        "Print",
        name=name,
        input=input_,
        data=list(data),
        message=message or "",
        summarize=summarize or 3,
        first_n=-1 if first_n is None else first_n,
    )


#: What is never asked for its own operator when it becomes no tensor: the reason is the better answer.
_VALUES = (Tensor, numbers.Number, str, bytes, list, tuple, np.ndarray, np.generic)


def _wrapper(method: str, x: Tensor) -> Any:
    found = x.op.graph.host.ops.operator(method)
    if found is None:
        raise UnknownOpError(
            f"no loaded op library declares the operator {method}", hint="the std plugin does; is it blocked?"
        )
    return found


def apply_operator(method: str, x: Tensor, *args: Any) -> Any:
    """``-x``, ``x < y``, ``x[key]``: the operation has its op's own name."""
    return _wrapper(method, x)(x, *args)


def apply_binary(method: str, x: Tensor, y: Any) -> Any:
    """``x + y`` and its like: the operation is called ``add``. Python values on the right take the dtype of ``x``.

    Returns NotImplemented for a ``y`` that becomes no tensor and has an operator of its own, so that Python asks that.
    """
    name = method[2:-2]
    if type(y) is Tensor or isinstance(y, _VALUES) or not hasattr(type(y), f"__r{name}__"):
        return _wrapper(method, x)(x, y, name=name)
    with get_default_graph().name_scope(name) as scope:
        try:
            right = convert_to_tensor(y, x.dtype, "y")
        except (GraphdockError, TypeError):
            return NotImplemented
        return _wrapper(method, x)(x, right, name=scope)


def apply_reflected(method: str, x: Any, y: Tensor) -> Any:
    """``x + y`` where only ``y`` is a tensor; ``x`` takes its dtype."""
    with get_default_graph().name_scope(method.strip("_")) as scope:
        return _wrapper(method, y)(convert_to_tensor(x, y.dtype, "x"), y, name=scope)


def name_scope(
    name: str | None, default_name: str | None = None, values: Sequence[Any] | None = None
) -> AbstractContextManager[str]:
    """Prefix the names of operations made inside; yields the full prefix. ``values`` is accepted for TensorFlow's sake."""
    return get_default_graph().name_scope(name if name is not None else default_name)


def control_dependencies(control_inputs: Sequence[Any] | None) -> AbstractContextManager[None]:
    """Operations made inside run after ``control_inputs``; None clears all outer ones."""
    return get_default_graph().control_dependencies(control_inputs)


def device(name: str | DeviceSpec | Callable[[Operation], Any] | None) -> AbstractContextManager[None]:
    """Ask for a device: ``"cpu:1"``, ``"/job:worker/task:1"``, a function of the operation, or None to clear."""
    return get_default_graph().device(name)


def colocate_with(op: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
    """Operations made inside share a device with ``op``."""
    return get_default_graph().colocate_with(op, ignore_existing)


def container(name: str) -> AbstractContextManager[str]:
    """Variables made inside live in the named container."""
    return get_default_graph().container(name)


@contextlib.contextmanager
def init_scope() -> Iterator[None]:
    """Leave all bodies of conds and loops, and all control dependencies: where variables are made."""
    graph = get_default_graph()
    while isinstance(graph, BodyGraph):
        graph = graph.outer
    with graph.as_default(), graph.control_dependencies(None):
        yield
