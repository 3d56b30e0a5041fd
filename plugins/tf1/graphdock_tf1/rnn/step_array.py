"""Arrays that the steps of a network leave behind, one tensor each: where TensorFlow gives a TensorArray."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock import nest
from graphdock.errors import InvalidArgumentError, UnimplementedError
from graphdock.typing import TensorLike


class StepArray:
    """Tensors of one dtype and shape, in the order of the steps that left them.

    It may stand in the state of a cell, which gives a longer one in each step. The loops of this library keep what a step adds, at
    the same cost however many steps there are; a ``tf.while_loop`` takes tensors alone. It never changes.

    Attributes:
      like: a tensor of the shape and dtype of each.
    """

    def __init__(self, like: Any, rows: Any = None, added: Sequence[Any] = (), within: bool = False) -> None:
        self.like = like
        self._rows = rows
        self._added = tuple(added)
        self._within = within

    @property
    def dtype(self) -> Any:
        return self.like.dtype

    def plus(self, value: Any) -> StepArray:
        """One longer by the tensor of one more step."""
        return StepArray(self.like, self._rows, (*self._added, value), self._within)

    # what a program reads

    def stack(self, name: str | None = None) -> Any:
        """All of them as one tensor, ``[steps, ...]``.

        Raises:
          UnimplementedError: within the loop whose steps they are.
        """
        if self._within:
            raise UnimplementedError(
                "what earlier steps left can not be read within their loop",
                hint="carry what a step has to know in a state of its own",
            )
        with _tf.name_scope(name or "StepArrayStack"):
            parts = [] if self._rows is None else [self._rows]
            if self._added:
                parts.append(_tf.stack(self._added))
            if not parts:
                return _tf.zeros_like(self.like)[None][:0]
            return parts[0] if len(parts) == 1 else _tf.concat(parts, 0)

    def size(self, name: str | None = None) -> Any:
        """The number of steps, an int32 scalar."""
        return _tf.identity(_tf.shape(self.stack())[0], name=name)

    def read(self, index: TensorLike, name: str | None = None) -> Any:
        """The one of a step; an index that is none is an error of the step that reads."""
        return _tf.gather(self.stack(), index, name=name)

    def gather(self, indices: TensorLike, name: str | None = None) -> Any:
        """Those of some steps, ``[indices, ...]``."""
        return _tf.gather(self.stack(), indices, name=name)

    def concat(self, name: str | None = None) -> Any:
        """All of them one after the other along their own first dim."""
        rows = self.stack()
        return _tf.reshape(rows, _tf.concat([[-1], _tf.shape(rows)[2:]], 0), name=name)

    # what a loop does with it

    def entered(self) -> StepArray:
        """What the body of a loop is given: nothing yet."""
        return StepArray(self.like, within=True)

    def left(self, owner: str) -> Any:
        """What the step of a loop added.

        Raises:
          InvalidArgumentError: another number of tensors than one.
        """
        if len(self._added) != 1:
            raise InvalidArgumentError(
                f"{owner}: a step has to add one tensor to each array", expected="1", got=str(len(self._added))
            )
        return self._added[0]

    def followed_by(self, rows: Any) -> StepArray:
        """What there is after a loop, whose steps left ``rows``."""
        empty = self._rows is None and not self._added
        return StepArray(self.like, rows if empty else _tf.concat([self.stack(), rows], 0))


def parted(structure: Any) -> tuple[list[Any], list[StepArray]]:
    """The leaves of a state: its tensors, and its arrays of steps."""
    flat = nest.flatten(structure)
    return [x for x in flat if not isinstance(x, StepArray)], [x for x in flat if isinstance(x, StepArray)]


def joined(structure: Any, tensors: Sequence[Any], arrays: Sequence[Any]) -> Any:
    """A state like ``structure`` of other tensors and arrays, each in the order of :func:`parted`."""
    rest, others = iter(tensors), iter(arrays)
    return nest.pack_sequence_as(
        structure, [next(others if isinstance(x, StepArray) else rest) for x in nest.flatten(structure)]
    )
