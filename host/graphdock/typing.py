"""Types for annotations, as ``numpy.typing`` has them: what functions of ``tf`` take.

    def normalize(x: tf.typing.TensorLike, dtype: tf.typing.DTypeLike = tf.float32) -> tf.Tensor: ...

A type checker sees what the names mean. While a program runs they are ``Any``: they check nothing, and import nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    import numpy as np
    import numpy.typing as npt

    from graphdock.dtypes import DType
    from graphdock.graph.tensor import Tensor
    from graphdock.tensor_shape import TensorShape

__all__ = ["DTypeLike", "DTypeName", "HasTensor", "Operators", "ScalarLike", "ShapeLike", "SupportsArray", "TensorLike"]

#: The names of dtypes, as specs, ``tf.cast(x, "float32")`` and GraphDefs write them.
DTypeName = Literal[
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "string",
    "resource",
    "variant",
]


class HasTensor(Protocol):
    """A Tensor, Variable or IndexedSlices: it has a dtype and stands in a graph. An Operation is none."""

    @property
    def dtype(self) -> DType: ...
    @property
    def name(self) -> str: ...
    @property
    def op(self) -> Any: ...


class SupportsArray(Protocol):
    """Object that NumPy makes an array of, such as a tensor of another framework."""

    def __array__(self) -> Any: ...


if TYPE_CHECKING:
    #: What converts to a tensor: tensors and variables, numbers, strings, arrays, and nested sequences of them.
    TensorLike: TypeAlias = (
        HasTensor | SupportsArray | np.generic | bool | int | float | complex | str | bytes | Sequence["TensorLike"]
    )
    #: A number, or a tensor, variable or array that holds one.
    ScalarLike: TypeAlias = HasTensor | SupportsArray | float
    #: What :func:`graphdock.as_dtype` takes.
    DTypeLike: TypeAlias = (
        DType
        | DTypeName
        | np.dtype[Any]
        | type[np.generic]
        | type[bool]
        | type[int]
        | type[float]
        | type[complex]
        | type[str]
        | type[bytes]
    )
    #: A static shape: None where a dim, or the rank, is not known.
    ShapeLike: TypeAlias = TensorShape | Sequence[int | None] | npt.NDArray[np.integer[Any]] | int | None

    class Operators:
        """Python's operators on a Tensor or Variable. Their methods are put there by name, where no checker sees them."""

        def __add__(self, other: TensorLike) -> Tensor: ...
        def __radd__(self, other: TensorLike) -> Tensor: ...
        def __sub__(self, other: TensorLike) -> Tensor: ...
        def __rsub__(self, other: TensorLike) -> Tensor: ...
        def __mul__(self, other: TensorLike) -> Tensor: ...
        def __rmul__(self, other: TensorLike) -> Tensor: ...
        def __truediv__(self, other: TensorLike) -> Tensor: ...
        def __rtruediv__(self, other: TensorLike) -> Tensor: ...
        def __floordiv__(self, other: TensorLike) -> Tensor: ...
        def __rfloordiv__(self, other: TensorLike) -> Tensor: ...
        def __mod__(self, other: TensorLike) -> Tensor: ...
        def __rmod__(self, other: TensorLike) -> Tensor: ...
        def __pow__(self, other: TensorLike) -> Tensor: ...
        def __rpow__(self, other: TensorLike) -> Tensor: ...
        def __matmul__(self, other: TensorLike) -> Tensor: ...
        def __rmatmul__(self, other: TensorLike) -> Tensor: ...
        def __and__(self, other: TensorLike) -> Tensor: ...
        def __rand__(self, other: TensorLike) -> Tensor: ...
        def __or__(self, other: TensorLike) -> Tensor: ...
        def __ror__(self, other: TensorLike) -> Tensor: ...
        def __xor__(self, other: TensorLike) -> Tensor: ...
        def __rxor__(self, other: TensorLike) -> Tensor: ...
        def __lt__(self, other: TensorLike) -> Tensor: ...
        def __le__(self, other: TensorLike) -> Tensor: ...
        def __gt__(self, other: TensorLike) -> Tensor: ...
        def __ge__(self, other: TensorLike) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __getitem__(self, key: Any) -> Tensor: ...

else:
    TensorLike = ScalarLike = DTypeLike = ShapeLike = Any
    Operators = object
