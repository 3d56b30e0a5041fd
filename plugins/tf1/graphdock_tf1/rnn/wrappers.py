"""Cells around a cell: dropout, residual connections, a device."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import graphdock as _tf
from graphdock import nest
from graphdock.errors import InvalidArgumentError
from graphdock.typing import DTypeLike
from graphdock_std.grad_support import is_tensor

from graphdock_tf1.rnn.cell import CellAround, LSTMStateTuple


class CellWrapper(CellAround, ABC):
    """A cell with the sizes, the zero state and the variables of another; it has no variable scope of its own.

    Args:
      cell: the cell inside.
    """

    @property
    def wrapped_cell(self) -> Any:
        """The cell inside."""
        return self._cell

    @property
    def trainable_weights(self) -> list[_tf.Variable]:
        return list(getattr(self._cell, "trainable_weights", []))

    @property
    def non_trainable_weights(self) -> list[_tf.Variable]:
        return list(getattr(self._cell, "non_trainable_weights", []))

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        return self._around_cell(inputs, state, {} if scope is None else {"scope": scope})

    @abstractmethod
    def _around_cell(self, inputs: Any, state: Any, keywords: dict[str, Any]) -> Any:
        """The output and the next state."""


class DropoutWrapper(CellWrapper):
    """A cell of whose input, output and state elements are dropped.

    Args:
      cell: the cell inside.
      input_keep_prob, output_keep_prob, state_keep_prob: the probability with which an element stays, a number or a scalar tensor.
        Of an LSTM's state the memory stays whole.
      variational_recurrent: the same elements are dropped in all steps (Gal and Ghahramani, https://arxiv.org/abs/1512.05287); it
        needs ``dtype``, and ``input_size`` where inputs are dropped.
      input_size: the sizes of the inputs, without the batch.
      dtype: of inputs, states and outputs.
      seed: of what is dropped, from which each place draws seeds of its own.
      dropout_state_filter_visitor: takes a state, or a structure inside of it, and returns whether its elements may be dropped, or
        a structure of answers.

    Raises:
      InvalidArgumentError: a probability outside of 0 and 1, or what ``variational_recurrent`` needs is missing.
    """

    def __init__(
        self,
        cell: Any,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False,
        input_size: Any = None,
        dtype: DTypeLike | None = None,
        seed: int | None = None,
        dropout_state_filter_visitor: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(cell)
        if dropout_state_filter_visitor is not None and not callable(dropout_state_filter_visitor):
            raise TypeError("dropout_state_filter_visitor must be callable")
        self._visitor = dropout_state_filter_visitor or _not_the_memory
        given = {"input": input_keep_prob, "state": state_keep_prob, "output": output_keep_prob}
        for name, probability in given.items():
            if not is_tensor(probability) and not 0 <= float(probability) <= 1:
                raise InvalidArgumentError(f"Parameter {name}_keep_prob must be between 0 and 1", got=str(probability))
        self._keep = {name: p if is_tensor(p) else float(p) for name, p in given.items()}
        self._seed = seed
        self._noise: dict[str, list[Any]] = {}
        if variational_recurrent:
            if dtype is None:
                raise InvalidArgumentError("When variational_recurrent=True, dtype must be provided")
            if input_size is None and self._drops("input"):
                raise InvalidArgumentError(
                    "When variational_recurrent=True and input_keep_prob < 1.0 or is unknown, input_size must be provided"
                )
            sizes = {"input": input_size, "state": cell.state_size, "output": cell.output_size}
            for name, size in sizes.items():
                if self._drops(name):
                    self._noise[name] = [self._drawn(name, i, s, dtype) for i, s in enumerate(_sizes(size))]

    def _drops(self, name: str) -> bool:
        keep = self._keep[name]
        return is_tensor(keep) or keep < 1

    def _drawn(self, name: str, index: int, size: Any, dtype: DTypeLike) -> Any:
        """Return what decides of the elements of one row, the same for all steps and rows."""
        shape = size.as_list() if isinstance(size, _tf.TensorShape) else [size]
        return _tf.random_uniform([1, *shape], dtype=dtype, seed=self._seed_of(name, index))

    def _seed_of(self, name: str, index: int) -> int | None:
        """A seed for each place, made of the one that was given as TensorFlow does."""
        if self._seed is None:
            return None
        text = f"{self._seed}{name}_{index}".encode()
        return int(hashlib.md5(text).hexdigest()[:8], 16) & 0x7FFFFFFF  # noqa: S324 - as TensorFlow; nothing is secret

    def _dropped(self, name: str, values: Any, wanted: Any = None) -> Any:
        if not self._drops(name):
            return values
        flat = nest.flatten(values)
        chosen = [True] * len(flat) if wanted is None else nest.flatten(wanted)
        return nest.pack_sequence_as(
            values, [self._drop(name, i, v) if c else v for i, (v, c) in enumerate(zip(flat, chosen, strict=True))]
        )

    def _drop(self, name: str, index: int, value: Any) -> Any:
        keep = self._keep[name]
        if value.shape.rank == 0:
            return value
        if name not in self._noise:
            return _tf.nn.dropout(value, keep_prob=keep, seed=self._seed_of(name, index))
        kept = _tf.floor(keep + self._noise[name][index])
        made = value / keep * kept
        made.set_shape(value.shape)
        return made

    def _around_cell(self, inputs: Any, state: Any, keywords: dict[str, Any]) -> Any:
        output, following = self._cell(self._dropped("input", inputs), state, **keywords)
        if self._drops("state"):
            following = self._dropped("state", following, _answers(self._visitor, following))
        return self._dropped("output", output), following


def _sizes(size: Any) -> list[Any]:
    return [size] if isinstance(size, _tf.TensorShape) else nest.flatten(size)


def _not_the_memory(state: Any) -> Any:
    """Return whether elements of a state may be dropped: of an LSTM's not those of the memory, and of arrays none."""
    if isinstance(state, LSTMStateTuple):
        return LSTMStateTuple(c=False, h=True)
    return not isinstance(state, _tf.TensorArray)


def _answers(visitor: Callable[[Any], Any], state: Any) -> Any:
    """For each tensor of a state whether its elements may be dropped."""
    answer = visitor(state)
    if isinstance(answer, bool):
        if answer and isinstance(state, list | tuple):
            return [_answers(visitor, item) for item in state]
        return nest.pack_sequence_as(state, [answer] * len(nest.flatten(state)))
    return answer


class ResidualWrapper(CellWrapper):
    """A cell whose inputs are added to its outputs.

    Args:
      cell: the cell inside.
      residual_fn: takes the inputs and the outputs and returns the outputs; default: their sum, for which they must be alike.
    """

    def __init__(self, cell: Any, residual_fn: Callable[[Any, Any], Any] | None = None) -> None:
        super().__init__(cell)
        self._residual_fn = residual_fn or _sum

    def _around_cell(self, inputs: Any, state: Any, keywords: dict[str, Any]) -> Any:
        outputs, following = self._cell(inputs, state, **keywords)
        return self._residual_fn(inputs, outputs), following


def _sum(inputs: Any, outputs: Any) -> Any:
    if not nest.same_structure(inputs, outputs):
        raise InvalidArgumentError(
            "ResidualWrapper: inputs and outputs nest differently", got=f"{inputs} and {outputs}"
        )
    made = []
    for x, y in zip(nest.flatten(inputs), nest.flatten(outputs), strict=True):
        x.shape.assert_is_compatible_with(y.shape)
        made.append(x + y)
    return nest.pack_sequence_as(outputs, made)


class DeviceWrapper(CellWrapper):
    """A cell that runs on a device.

    Args:
      cell: the cell inside.
      device: as for ``tf.device``.
    """

    def __init__(self, cell: Any, device: Any) -> None:
        super().__init__(cell)
        self._device = device

    def zero_state(self, batch_size: Any, dtype: DTypeLike) -> Any:
        with _tf.device(self._device):
            return super().zero_state(batch_size, dtype)

    def _around_cell(self, inputs: Any, state: Any, keywords: dict[str, Any]) -> Any:
        with _tf.device(self._device):
            return self._cell(inputs, state, **keywords)
