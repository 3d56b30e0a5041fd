"""MultiRNNCell: cells on top of one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock.errors import InvalidArgumentError
from graphdock.typing import DTypeLike

from graphdock_tf1.rnn.cell import RNNCell, check_cell


class MultiRNNCell(RNNCell):
    """Cells of which each takes the output of the one before, in variable scopes ``cell_0``, ``cell_1``, ...

    Args:
      cells: the cells, the lowest first.
      state_is_tuple: the state is a tuple of the cells' states; otherwise one tensor with all side by side.

    Raises:
      InvalidArgumentError: no cells, or one whose state is a tuple while this one's is not. TypeError: no list of cells.
    """

    def __init__(self, cells: Sequence[Any], state_is_tuple: bool = True) -> None:
        super().__init__()
        if not isinstance(cells, list | tuple):
            raise TypeError(f"cells must be a list or tuple, but saw: {cells}")
        if not cells:
            raise InvalidArgumentError("MultiRNNCell must have at least one cell")
        for i, cell in enumerate(cells):
            check_cell(f"cells[{i}]", cell)
        self._cells = list(cells)
        self._state_is_tuple = state_is_tuple
        if not state_is_tuple and any(isinstance(c.state_size, list | tuple) for c in cells):
            raise InvalidArgumentError(
                "some cells have tuples as states, but state_is_tuple is False",
                got=str([c.state_size for c in cells]),
                hint="say state_is_tuple=True here, or False to the cells",
            )

    @property
    def state_size(self) -> Any:
        sizes = tuple(cell.state_size for cell in self._cells)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        return self._cells[-1].output_size

    def zero_state(self, batch_size: Any, dtype: DTypeLike) -> Any:
        with _tf.name_scope(type(self).__name__ + "ZeroState"):
            if self._state_is_tuple:
                return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)
            return super().zero_state(batch_size, dtype)

    @property
    def trainable_weights(self) -> list[_tf.Variable]:
        return [w for cell in self._cells if hasattr(cell, "trainable_weights") for w in cell.trainable_weights]

    @property
    def non_trainable_weights(self) -> list[_tf.Variable]:
        return [w for cell in self._cells if hasattr(cell, "non_trainable_weights") for w in cell.non_trainable_weights]

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        states = state if self._state_is_tuple else _tf.split(state, [cell.state_size for cell in self._cells], 1)
        if not isinstance(states, list | tuple) or len(states) != len(self._cells):
            raise InvalidArgumentError(
                "MultiRNNCell: the state must be a tuple of the cells' states",
                expected=f"{len(self._cells)} states",
                got=repr(state),
            )
        following = []
        for i, (cell, before) in enumerate(zip(self._cells, states, strict=True)):
            with _tf.variable_scope(f"cell_{i}"):
                inputs, after = cell(inputs, before)
                following.append(after)
        return inputs, tuple(following) if self._state_is_tuple else _tf.concat(following, 1)
