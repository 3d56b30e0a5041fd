"""RNNCell: the base of all recurrent cells, and the states that they start from."""

from __future__ import annotations

from typing import Any, NamedTuple

import graphdock as _tf
from graphdock import nest
from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError, UnimplementedError
from graphdock.typing import DTypeLike
from graphdock_std.grad_support import is_tensor

from graphdock_tf1.layers.base import Layer
from graphdock_tf1.layers.lookup import activation_of


class LSTMStateTuple(NamedTuple):
    """The state of an LSTM: ``c``, what it remembers, and ``h``, its output; or the sizes or shapes of both."""

    c: Any
    h: Any

    @property
    def dtype(self) -> Any:
        """The dtype of both. Raises DTypeError where they differ."""
        if self.c.dtype != self.h.dtype:
            raise DTypeError("the two states differ", expected=str(self.c.dtype), got=str(self.h.dtype))
        return self.c.dtype


class RNNCell(Layer):
    """Base of what computes ``(output, next_state)`` of an input ``[batch, n]`` and a state.

    A cell of one's own defines :attr:`state_size`, :attr:`output_size` and ``call(inputs, state)``, which may make variables with
    ``tf.get_variable`` or ``add_weight``. They stand below a variable scope of the cell's name and are shared by all calls.
    """

    _around: Any = None

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """The output and the next state.

        Args:
          inputs: tensor ``[batch, n]``.
          state: of the structure and sizes of :attr:`state_size`.
          scope: variable scope of the first call; default: one of the class's name.
        """
        if scope is not None:
            with _tf.variable_scope(scope, custom_getter=self._noted) as entered:
                return super().__call__(inputs, state, scope=entered)
        if self._around is None:
            self._around = _tf.get_variable_scope()
        with _tf.variable_scope(self._around, custom_getter=self._noted, auxiliary_name_scope=False):
            return super().__call__(inputs, state)

    def _noted(self, getter: Any, *args: Any, **keywords: Any) -> Any:
        """Make a variable, and count it among the cell's."""
        made = getter(*args, **keywords)
        for part in made if isinstance(made, _tf.PartitionedVariable) else [made]:
            if not isinstance(part, _tf.Variable):  # what a getter of the program's made of one
                continue
            kept = self._trainable_weights if part.trainable else self._non_trainable_weights
            if not any(part is v for v in kept):
                kept.append(part)
        return made

    @property
    def state_size(self) -> Any:
        """A number, a TensorShape, or a structure of them: sizes without the batch."""
        raise UnimplementedError(f"{type(self).__name__} does not define state_size")

    @property
    def output_size(self) -> Any:
        """A number, a TensorShape, or a structure of them: sizes without the batch."""
        raise UnimplementedError(f"{type(self).__name__} does not define output_size")

    def build(self, input_shape: Any) -> None:
        """Make the variables. Optional; default: ``call`` makes them."""

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: DTypeLike | None = None) -> Any:
        """:meth:`zero_state`, of the batch and dtype of ``inputs`` if those are given.

        Raises:
          InvalidArgumentError: neither inputs nor both others, or they contradict each other.
        """
        if inputs is not None:
            inputs = _tf.convert_to_tensor(inputs)
            known = inputs.shape.as_list()[0]
            if isinstance(batch_size, int) and known != batch_size:
                raise InvalidArgumentError(
                    "the inputs are another batch than batch_size", expected=str(batch_size), got=str(known)
                )
            if dtype is not None and _tf.as_dtype(dtype) != inputs.dtype:
                raise DTypeError("the inputs are not of dtype", expected=str(dtype), got=inputs.dtype.name)
            batch_size = known if known is not None else _tf.shape(inputs)[0]
            dtype = inputs.dtype
        if batch_size is None or dtype is None:
            raise InvalidArgumentError(
                "get_initial_state needs inputs, or batch_size and dtype",
                got=f"batch_size={batch_size}, dtype={dtype}",
            )
        return self.zero_state(batch_size, dtype)

    def zero_state(self, batch_size: Any, dtype: DTypeLike) -> Any:
        """Zeros of the structure of :attr:`state_size`.

        Args:
          batch_size: a number or an integer scalar.
          dtype: of the state.
        """
        with _tf.name_scope(type(self).__name__ + "ZeroState"):
            return zeros_of(self.state_size, batch_size, dtype)


class LayerRNNCell(RNNCell):
    """A cell that makes its variables in ``build``, with ``add_weight``, as a layer does."""

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        return Layer.__call__(self, inputs, state, scope=scope)


class CellAround(RNNCell):
    """A cell with the sizes and the zero state of another one, which it calls; its own variables stand below its scope.

    Args:
      cell: the cell inside. reuse: as of BasicRNNCell.
    """

    def __init__(self, cell: Any, reuse: Any = None) -> None:
        super().__init__(_reuse=reuse)
        check_cell("cell", cell)
        self._cell = cell

    @property
    def state_size(self) -> Any:
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: DTypeLike) -> Any:
        with _tf.name_scope(type(self).__name__ + "ZeroState"):
            return self._cell.zero_state(batch_size, dtype)


class UnitsCell(LayerRNNCell):
    """A cell of a number of units, which is the size of its output and of its state, with an activation; default: tanh."""

    def __init__(self, num_units: int, activation: Any, reuse: Any, name: Any, dtype: Any, **keywords: Any) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **keywords)
        self._num_units = num_units
        self._activation: Any = activation_of(activation) or _tf.tanh

    @property
    def state_size(self) -> int:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units

    def _affine(self, inputs_shape: Any, size: int, **how: Any) -> tuple[Any, Any]:
        """A kernel for the inputs and the last output, side by side, and a bias of zeros."""
        kernel = self.add_weight("kernel", [depth_of(inputs_shape) + self.output_size, size], **how)
        zeros = _tf.zeros_initializer(dtype=self.dtype or _tf.float32)
        return kernel, self.add_weight("bias", [size], initializer=zeros)


def full_shape(batch_size: Any, size: Any) -> tuple[Any, list[int | None]]:
    """The shape of one batch of a size of a cell: as ints or a vector tensor, and statically."""
    rest = _tf.TensorShape(size if isinstance(size, _tf.TensorShape | list | tuple) else [size]).as_list()
    if None in rest:
        raise ShapeError("a size of a cell must be known", got=str(size))
    if not is_tensor(batch_size):
        return [int(batch_size), *rest], [int(batch_size), *rest]
    return _tf.stack([_tf.cast(batch_size, _tf.int32), *rest]), [None, *rest]


def zeros_of(sizes: Any, batch_size: Any, dtype: DTypeLike) -> Any:
    """Zeros for each size of a structure, with the batch in front."""

    def zeros(size: Any) -> Any:
        shape, static = full_shape(batch_size, size)
        made = _tf.zeros(shape, dtype)
        made.set_shape(static)
        return made

    if isinstance(sizes, _tf.TensorShape):
        return zeros(sizes)
    found = [zeros(size) for size in nest.flatten(sizes)]
    return nest.pack_sequence_as(sizes, found)


def depth_of(inputs_shape: Any) -> int:
    """The last dim of the inputs ``[batch, n]``. Raises ShapeError where it is not known."""
    depth = _tf.TensorShape(inputs_shape)[-1].value
    if depth is None:
        raise ShapeError(
            "a cell must know the last dim of its inputs",
            expected="[batch, n]",
            got=str(inputs_shape),
            hint="call set_shape on them",
        )
    return int(depth)


def check_cell(name: str, cell: Any) -> None:
    """Raise TypeError, as TensorFlow does, for what is no cell; names what it lacks."""
    lacks = [f"{part!r}" for part in ("output_size", "state_size") if not _has(cell, part)]
    if not (hasattr(cell, "zero_state") or hasattr(cell, "get_initial_state")):
        lacks.append("'zero_state'")
    if not callable(cell):
        lacks.append("a call")
    if lacks:
        raise TypeError(f"The argument {name!r} ({cell}) is not an RNNCell: it lacks {', '.join(lacks)}")


def _has(cell: Any, name: str) -> bool:
    """Return whether a cell has a property, though it may not be defined."""
    return hasattr(type(cell), name) or hasattr(cell, name)
