"""TensorArray: tensors that loops write and read by their index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import ArgumentTypeError, InvalidArgumentError, ShapeError
from graphdock.typing import TensorLike

_apply = _ops.apply_op


class _Facts:
    """Facts that all arrays that came of one share before anything runs.

    Attributes:
      shape: static shape of an element. ``infers``: all elements have the same one.
      parts: the namedtuple that stands for such an array among loop variables.
    """

    def __init__(self, dtype: Any, shape: Any, infers: bool, grows: bool) -> None:
        self.dtype = dtype
        self.shape = shape
        self.infers = infers
        self.grows = grows
        self.parts: type = _parts_of(self)

    def learn(self, shape: Any) -> None:
        """An element of that shape is written. Raises ShapeError where it can't be."""
        if not self.shape.is_compatible_with(shape):
            raise ShapeError(
                f"Inconsistent shapes: saw {shape} but expected {self.shape} (and infer_shape=True)",
                hint="pass infer_shape=False where elements differ",
            )
        if self.infers:
            self.shape = self.shape.merge_with(shape)


def _parts_of(facts: _Facts) -> type:
    """A namedtuple of the one tensor; of the class of others only where they came of the same array."""

    class Parts(tuple):  # type: ignore[type-arg]
        __slots__ = ()
        _fields = ("flow",)

        def __new__(cls, flow: Any) -> Any:
            return tuple.__new__(cls, (flow,))

        @property
        def flow(self) -> Any:
            return self[0]

        def _joined(self) -> TensorArray:
            return TensorArray(facts.dtype, flow=self[0], _facts=facts)

        def _invariants(self, shape: Any) -> Any:
            return type(self)(_tf.TensorShape([]))

    return Parts


class TensorArray:
    """Tensors of one dtype, by index. What writes gives a new array, which is to be used from then on.

    It may be a loop variable and a result of a branch. Gradients flow through it. A step may read what it has not written only
    where the shape of an element is known: as zeros.

    Args:
      dtype: of the elements. ``size``: how many, an int32 scalar; left out where ``flow`` is given.
      dynamic_size: a write past the end makes it longer. ``clear_after_read``: an element may be read once; default: True.
      tensor_array_name: for messages. ``handle``: taken for ``flow``.
      flow: the list that another array is, so as to go on with it.
      infer_shape: all elements have the shape of the first one. ``element_shape``: of each, as far as it is known.
      colocate_with_first_write_call: taken, and means nothing: lists lie in the host's memory.
      name: of the operation.

    Raises:
      ArgumentTypeError: no size, or no list to go on with. ShapeError: an element of another shape is written.
      InvalidArgumentError: in a step: an element is read or written twice, or is not there; elements have different shapes.
    """

    def __init__(
        self,
        dtype: Any,
        size: TensorLike | None = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
        _facts: _Facts | None = None,
    ) -> None:
        flow = handle if flow is None else flow
        if (size is None) == (flow is None):
            raise ArgumentTypeError("TensorArray: give size, or the flow of another array", got=f"{size!r}, {flow!r}")
        if flow is not None and (dynamic_size is not None or clear_after_read is not None):
            raise ArgumentTypeError("TensorArray: dynamic_size and clear_after_read are said where the array is made")
        shape = _tf.TensorShape(element_shape)
        self._facts = _facts or _Facts(_tf.as_dtype(dtype), shape, bool(infer_shape), bool(dynamic_size))
        if flow is None:
            with _tf.name_scope(name or "TensorArray"):
                flow = _apply(
                    "TensorListReserve",
                    element_shape=_shape(shape),
                    num_elements=_int32(size),
                    element_dtype=self.dtype,
                    dynamic_size=bool(dynamic_size),
                    clear_after_read=clear_after_read is not False,
                    write_once=True,
                    identical_element_shapes=bool(infer_shape),
                    array_name=tensor_array_name or "",
                )
        self._flow = flow

    @property
    def flow(self) -> Any:
        """The list, a scalar of dtype variant."""
        return self._flow

    @property
    def handle(self) -> Any:
        """The same: there is no resource behind it."""
        return self._flow

    @property
    def dtype(self) -> Any:
        return self._facts.dtype

    @property
    def dynamic_size(self) -> bool:
        return self._facts.grows

    @property
    def element_shape(self) -> Any:
        """Static shape of an element, as far as it is known."""
        return self._facts.shape

    # among loop variables

    def _split(self) -> Any:
        return self._facts.parts(self._flow)

    # what writes

    def _next(self, op: str, name: str | None, **args: Any) -> TensorArray:
        made = _apply(op, input_handle=self._flow, name=name, **args)
        return TensorArray(self.dtype, flow=made, _facts=self._facts)

    def identity(self) -> TensorArray:
        """The same array, behind an operation of its own."""
        return TensorArray(self.dtype, flow=_tf.identity(self._flow), _facts=self._facts)

    def write(self, index: TensorLike, value: TensorLike, name: str | None = None) -> TensorArray:
        """The array with ``value`` as element ``index``."""
        item = self._tensor(value)
        self._facts.learn(item.shape)
        return self._next("TensorListSetItem", name, index=_int32(index), item=item)

    def unstack(self, value: TensorLike, name: str | None = None) -> TensorArray:
        """The array with the rows of ``value`` as its first elements."""
        with _tf.name_scope(name or "TensorArrayUnstack"):
            rows = self._tensor(value)
            return self.scatter(_tf.range(_tf.shape(rows)[0]), rows)

    def scatter(self, indices: TensorLike, value: TensorLike, name: str | None = None) -> TensorArray:
        """The array with the rows of ``value`` as elements ``indices``."""
        rows = self._tensor(value)
        if rows.shape.ndims is not None:
            self._facts.learn(rows.shape[1:])
        return self._next("TensorListScatterIntoExistingList", name, tensor=rows, indices=_int32(indices))

    def split(self, value: TensorLike, lengths: TensorLike, name: str | None = None) -> TensorArray:
        """The array with parts of ``value`` as its elements, each ``lengths`` long."""
        parts = self._tensor(value)
        if self._facts.infers and parts.shape.ndims is not None:
            sizes = _number(_tf.convert_to_tensor(lengths))
            alike = sizes is not None and len(sizes) and (sizes == sizes[0]).all()
            self._facts.learn(_tf.TensorShape([int(sizes[0]) if alike else None]).concatenate(parts.shape[1:]))
        return self._next("GraphdockTensorListSplit", name, tensor=parts, lengths=_tf.cast(lengths, "int64"))

    def _tensor(self, value: Any) -> Any:
        tensor = _tf.convert_to_tensor(value, None if isinstance(value, _tf.Tensor) else self.dtype)
        if tensor.dtype != self.dtype:
            raise InvalidArgumentError(
                "TensorArray: a value of another dtype is written", expected=self.dtype.name, got=tensor.dtype.name
            )
        return tensor

    # what reads

    def _read(self, op: str, name: str | None, shape: Any, **args: Any) -> Any:
        dims = _shape(self._facts.shape)
        made = _apply(op, input_handle=self._flow, element_shape=dims, element_dtype=self.dtype, name=name, **args)
        if shape is not None:
            (made if isinstance(made, _tf.Tensor) else made[0]).set_shape(shape(self._facts.shape))
        return made

    def read(self, index: TensorLike, name: str | None = None) -> Any:
        """Element ``index``."""
        return self._read("TensorListGetItem", name, None, index=_int32(index))

    def gather(self, indices: TensorLike, name: str | None = None) -> Any:
        """Elements ``indices``, stacked: ``[len(indices), ...]``."""
        return self._read("TensorListGather", name, None, indices=_int32(indices))

    def stack(self, name: str | None = None) -> Any:
        """All elements as one tensor, ``[size, ...]``."""
        count = None if self.dynamic_size else _static_size(self._flow)
        return self._read("TensorListStack", name, None, num_elements=-1 if count is None else count)

    def concat(self, name: str | None = None) -> Any:
        """All elements one behind the other: they may differ in their first dim."""
        none = _tf.constant([], "int64")
        return self._read("TensorListConcatV2", name, None, leading_dims=none)[0]

    def size(self, name: str | None = None) -> Any:
        """The number of elements, an int32 scalar."""
        return _apply("TensorListLength", input_handle=self._flow, name=name)

    def close(self, name: str | None = None) -> Any:
        """An operation behind which nobody may read or write the array."""
        return _apply("GraphdockTensorListClose", input_handle=self._flow, name=name)

    def grad(self, source: str, flow: Any = None, name: str | None = None) -> Any:
        """Not here: gradients of arrays are lists of their own, which ``tf.gradients`` makes.

        Raises:
          UnimplementedError: always.
        """
        raise _tf.errors.UnimplementedError("TensorArray.grad: tf.gradients makes the gradients of arrays by itself")


def _int32(value: Any) -> Any:
    tensor = _tf.convert_to_tensor(value)
    return tensor if tensor.dtype == _tf.int32 else _tf.cast(tensor, _tf.int32)


def _shape(shape: Any) -> Any:
    dims: Callable[[Any], Any] = lambda d: -1 if d is None else d  # noqa: E731
    return _tf.constant(-1 if shape.ndims is None else [dims(d) for d in shape.as_list()], "int32")


def _static_size(flow: Any) -> int | None:
    """The size that an array was made with, where that is a number."""
    op = flow.op
    while op.type != "TensorListReserve":
        if op.type == "While":
            flow = _before(op, flow)
            if flow is None:
                return None
        elif op.type in _ONWARD:
            flow = op.inputs[0]
        else:
            return None
        op = flow.op
    size = _number(op.inputs[1])
    return None if size is None else int(size)


#: ops whose result is as long as their first input
_ONWARD = ("TensorListSetItem", "TensorListScatterIntoExistingList", "GraphdockTensorListSplit", "Identity")


def _before(loop: Any, flow: Any) -> Any:
    """The array that a loop begins with, where each iteration writes to that; None else."""
    number = loop.outputs.index(flow)
    body = loop.bodies[1]
    if number >= len(loop.get_attr("output_shapes")):
        return None
    inner = body.outputs[number]
    while inner is not body.parameters[number]:
        if inner.op.type not in _ONWARD:
            return None
        inner = inner.op.inputs[0]
    return loop.inputs[number]


def _number(tensor: Any) -> Any:
    """The array of a constant; None of any other tensor."""
    return tensor.op.get_attr("value") if tensor.op.type == "Const" else None
