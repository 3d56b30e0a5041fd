"""InputSpec: what a layer wants of an input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import graphdock as _tf
from graphdock import nest
from graphdock.errors import ArgumentTypeError, DTypeError, InvalidArgumentError, ShapeError
from graphdock.typing import DTypeLike, ShapeLike


class InputSpec:
    """Demands of a layer on an input: what is None goes unchecked.

    Args:
      dtype: its dtype.
      shape: its shape, the batch included, with None for dims that may be anything.
      ndim: its rank; a ``shape`` has one.
      max_ndim, min_ndim: bounds of its rank.
      axes: axis -> the size that it must have there; None for any.

    Raises:
      ArgumentTypeError: ``axes`` is no dict of integers. InvalidArgumentError: an axis is beyond the rank.
    """

    def __init__(
        self,
        dtype: DTypeLike | None = None,
        shape: ShapeLike = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: Mapping[int, int | None] | None = None,
    ) -> None:
        self.dtype = None if dtype is None else _tf.as_dtype(dtype)
        dims = None if shape is None else _tf.TensorShape(shape)
        known = dims is not None and dims.rank is not None
        self.shape = tuple(dims.as_list()) if dims is not None and known else None
        self.ndim = len(self.shape) if self.shape is not None else ndim
        self.max_ndim = max_ndim
        self.min_ndim = min_ndim
        try:
            self.axes = {int(k): None if v is None else int(v) for k, v in dict(axes or {}).items()}
        except (TypeError, ValueError):
            raise ArgumentTypeError(
                "InputSpec: axes must be a dict", expected="integers by integers", got=repr(axes)
            ) from None
        rank = self.max_ndim if self.ndim is None else self.ndim
        if self.axes and rank is not None and max(self.axes) >= rank:
            raise InvalidArgumentError(
                "InputSpec: an axis is beyond the rank", expected=f"at most {rank - 1}", got=str(max(self.axes))
            )

    def __repr__(self) -> str:
        told = ("dtype", "shape", "ndim", "max_ndim", "min_ndim", "axes")
        said = [f"{n}={getattr(self, n)}" for n in told if getattr(self, n)]
        return f"InputSpec({', '.join(said)})"


def check_inputs(spec: Any, inputs: Any, layer: str) -> None:
    """Refuse inputs that do not fit.

    Args:
      spec: an InputSpec, a structure of them with one for each input, or None.
      inputs: a tensor, or a structure of tensors.
      layer: name of the layer, for messages.

    Raises:
      ShapeError, DTypeError: an input does not fit. InvalidArgumentError: there are more or fewer inputs than specs.
    """
    if spec is None:
        return
    specs, given = nest.flatten(spec), nest.flatten(inputs)
    if len(specs) != len(given):
        raise InvalidArgumentError(
            f"the layer {layer!r} takes another number of inputs", expected=str(len(specs)), got=str(len(given))
        )
    for number, (wanted, value) in enumerate(zip(specs, given, strict=True)):
        if wanted is not None and value.shape.rank is not None:
            _check(wanted, value, f"input {number} of the layer {layer!r} does not fit")


def _check(spec: InputSpec, value: Any, said: str) -> None:
    dims = value.shape.as_list()
    rank, shown = len(dims), str(value.shape)
    if spec.ndim is not None and rank != spec.ndim:
        raise ShapeError(said, expected=f"rank {spec.ndim}", got=f"the shape {shown}")
    if spec.max_ndim is not None and rank > spec.max_ndim:
        raise ShapeError(said, expected=f"rank {spec.max_ndim} or less", got=f"the shape {shown}")
    if spec.min_ndim is not None and rank < spec.min_ndim:
        raise ShapeError(said, expected=f"rank {spec.min_ndim} or more", got=f"the shape {shown}")
    if spec.dtype is not None and value.dtype is not spec.dtype:
        raise DTypeError(said, expected=spec.dtype.name, got=value.dtype.name)
    for axis, size in spec.axes.items():
        if size is not None and dims[axis] not in (size, None):
            raise ShapeError(said, expected=f"{size} along axis {axis}", got=f"the shape {shown}")
    if spec.shape is not None and not value.shape.is_compatible_with(spec.shape):
        raise ShapeError(said, expected=str(_tf.TensorShape(spec.shape)), got=shown)
