"""Tensor: a symbolic handle to one output of an operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from graphdock.contracts.opdef import resolve
from graphdock.dtypes import DType
from graphdock.errors import ShapeError
from graphdock.shape import Dims, as_dims
from graphdock.tensor_shape import TensorShape
from graphdock.typing import Operators

if TYPE_CHECKING:
    from graphdock.graph.graph import Graph
    from graphdock.graph.operation import Operation
    from graphdock.typing import ShapeLike

__all__ = ["Tensor", "install_operators"]


class Tensor(Operators):
    """Output ``value_index`` of ``op``; holds no data. Two Tensors are equal only when they are the same object.

    Attributes:
      op: the operation that makes it.
      dtype: its element type.
      shape: its static shape, with None for unknown dims.
      name: ``"scope/MatMul_1:0"``.
    """

    __slots__ = ("__weakref__", "_dims", "dtype", "op", "value_index")
    __array_priority__ = 100  # NumPy arrays on the left leave the operator to us

    def __init__(self, op: Operation, value_index: int, dtype: DType, dims: Dims) -> None:
        self.op = op
        self.value_index = value_index
        self.dtype = dtype
        self._dims = dims

    @property
    def _op(self) -> Operation:
        """The same as ``op``: what programs of TensorFlow 1 reach for too."""
        return self.op

    @property
    def name(self) -> str:
        return f"{self.op.name}:{self.value_index}"

    @property
    def graph(self) -> Graph:
        return self.op.graph

    @property
    def device(self) -> str:
        return self.op.device

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self._dims)

    def get_shape(self) -> TensorShape:
        return TensorShape(self._dims)

    def set_shape(self, shape: ShapeLike) -> None:
        """Add what is known of the shape. Raises ShapeError when it contradicts the static shape.

        Plans that were made before stay valid: a step that has run runs again. New plans, and feeds of shapes that are new
        to a session, are checked against it.
        """
        try:
            self.op.graph.learn_shape(self, as_dims(shape))
        except ShapeError as error:
            raise ShapeError(f"set_shape on {self.name}: {error.message}", op=self.op.name, site=self.op.site) from None

    def consumers(self) -> list[Operation]:
        """The operations of this graph that read it, in creation order; linear in the size of the graph."""
        return [op for op in self.op.graph.get_operations() if any(t is self for t in op.inputs)]

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """Its value, from ``session`` or the default session."""
        from graphdock.graph.default_session import needed

        return needed(session).run(self, feed_dict)

    def __iter__(self) -> Iterator[Tensor]:
        raise TypeError(f"Tensor {self.name} is symbolic and cannot be iterated over; use tf.unstack or tf.while_loop")

    def __bool__(self) -> bool:
        raise TypeError(f"Tensor {self.name} is symbolic and has no truth value; use tf.cond or `is not None`")

    def __len__(self) -> int:
        raise TypeError(f"Tensor {self.name} is symbolic and has no len(); use tf.shape")

    def __float__(self) -> float:
        raise TypeError(f"Tensor {self.name} is symbolic and has no number; run it in a session")

    def __int__(self) -> int:
        raise TypeError(f"Tensor {self.name} is symbolic and has no number; run it in a session")

    if not TYPE_CHECKING:  # a checker must not take it for what NumPy makes an array of

        def __array__(self, *args: Any, **kwargs: Any) -> Any:
            raise TypeError(f"Tensor {self.name} is symbolic and has no NumPy value; run it in a session")

    def __repr__(self) -> str:
        return f"<tf.Tensor {self.name!r} shape={self.shape} dtype={self.dtype.name}>"

    def _repr_html_(self) -> str | None:
        from graphdock.graph.notebook import as_html

        return as_html(self)

    def __str__(self) -> str:
        shape = "" if self._dims is None else f", shape={self.shape}"
        return f'Tensor("{self.name}"{shape}, dtype={self.dtype.name})'


def install_operators(kind: type, value: Callable[[Any], Tensor] | None = None) -> None:
    """Let Python's operators on objects of a class be those on their values, or on themselves.

    The functions that dispatch them stand above the graph, and are found when they are used.
    """

    def install(method: str, function: str) -> None:
        target = f"graphdock.ops.core:{function}"

        def operator(self: Any, *args: Any) -> Any:
            return resolve(target)(method, self if value is None else value(self), *args)

        operator.__name__ = method
        setattr(kind, method, operator)

    def install_reflected(method: str, name: str) -> None:
        def operator(self: Any, other: Any) -> Any:
            return resolve("graphdock.ops.core:apply_reflected")(method, other, self if value is None else value(self))

        operator.__name__ = name
        setattr(kind, name, operator)

    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"):
        install(f"__{name}__", "apply_binary")
        install_reflected(f"__{name}__", f"__r{name}__")
    for name in ("lt", "le", "gt", "ge", "neg", "abs", "invert", "getitem"):
        install(f"__{name}__", "apply_operator")


install_operators(Tensor)
