"""Steps that are fed and fetched piece by piece: one activation, of which each piece runs the rows that it needs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from graphdock.contracts import errors

from graphdock_dataflow.scheduler import Activation, Run

if TYPE_CHECKING:
    from graphdock_dataflow.instance import Instance, Runnable

__all__ = ["StepInPieces"]

#: Rows that a row of no piece so far waits for.
_NEVER = 1 << 60


class StepInPieces:
    """A step between its pieces. One thread at a time runs one.

    Args:
      instance: of a program of a graph in pieces, for this step alone.
    """

    def __init__(self, instance: Instance, run: Run, level: Runnable) -> None:
        assert level.table.pieces is not None
        self._instance = instance
        self._run = run
        self._level = level
        self._pieces = level.table.pieces
        self._fed: set[int] = set()
        self._done: set[int] = set()
        self._failed = False
        self._activation = Activation(run, level, level.values.copy(), (), lambda activation: None)
        self._activation.ready.clear()
        self._activation.pending = [_NEVER] * len(level.rows)
        run.active.clear()

    def __call__(self, feeds: Mapping[int, Any], outputs: Sequence[int], origins: Collection[str]) -> list[Any]:
        """Run the next piece: see :meth:`graphdock.contracts.Program.begin`."""
        if self._failed:
            raise errors.FailedPreconditionError(
                "an earlier piece of this step has failed, and nobody knows what has run"
            )
        wanted = [row for i in outputs if (row := self._pieces.outputs[i]) is not None]
        for origin in origins:
            wanted += self._pieces.origins.get(origin, ())
        rows = self._needed(wanted, self._fed | feeds.keys())
        activation, values = self._activation, self._activation.values
        for i, feed in feeds.items():
            values[self._level.inputs[i]] = feed
        self._fed |= feeds.keys()
        ready = []
        for row in sorted(rows, reverse=True):  # what is taken last stands first
            before = self._pieces.needs[row] | self._pieces.order[row]
            activation.pending[row] = len(rows & before)
            if not activation.pending[row]:
                ready.append(row)
        self._failed = True
        if ready:
            activation.ready = ready
            self._run.active.append(activation)
            self._instance.within_context(self._run.drain)
        self._failed = False
        self._done |= rows
        # later pieces read them too: the caller gets copies
        return [np.array(values[self._level.outputs[i]])[()] for i in outputs]

    def _needed(self, wanted: Sequence[int], fed: set[int]) -> set[int]:
        """The rows that are to run, of those that these need.

        Raises:
          InvalidArgumentError: an input is needed that was not fed.
        """
        found: set[int] = set()
        stack = list(wanted)
        while stack:
            row = stack.pop()
            if row < 0:
                if ~row not in fed:
                    name = self._level.table.graph.inputs[~row].name.rpartition(":")[0]
                    raise errors.InvalidArgumentError(f"placeholder {name!r} is needed and was not fed")
            elif row not in found and row not in self._done:
                found.add(row)
                stack.extend(self._pieces.needs[row])
        return found
