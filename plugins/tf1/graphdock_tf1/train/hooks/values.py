"""Hooks that show values, compute some at the end, or feed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock.errors import GraphdockError, InvalidArgumentError, OutOfRangeError

from graphdock_tf1.train.hooks.run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from graphdock_tf1.train.hooks.timer import NeverTriggerTimer, SecondOrStepTimer

_log = logging.getLogger("graphdock")


class LoggingTensorHook(SessionRunHook):
    """Logs values of tensors with level INFO: ``loss = 0.25, step = 100 (1.203 sec)``.

    Args:
      tensors: label -> tensor or its name, or a list of these, which are then their own labels.
      every_n_iter: every so many steps of this session, the first one included. every_n_secs: every so many seconds.
      at_end: at the end too, in a step of its own; alone it is enough.
      formatter: label -> value as text for the log.

    Raises:
      InvalidArgumentError: none of the three is given, or the first two; ``every_n_iter`` is not positive.
    """

    def __init__(
        self,
        tensors: Mapping[str, Any] | Sequence[Any],
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[dict[Any, Any]], str] | None = None,
    ) -> None:
        only_at_end = at_end and every_n_iter is None and every_n_secs is None
        if not only_at_end and (every_n_iter is None) == (every_n_secs is None):
            raise InvalidArgumentError(
                "either at_end and/or exactly one of every_n_iter and every_n_secs must be provided."
            )
        if every_n_iter is not None and every_n_iter <= 0:
            raise InvalidArgumentError(f"invalid every_n_iter={every_n_iter}.")
        self._labels = sorted(tensors) if isinstance(tensors, Mapping) else list(tensors)
        self._given = dict(tensors) if isinstance(tensors, Mapping) else {item: item for item in tensors}
        self._formatter = formatter
        self._at_end = at_end
        self._timer = NeverTriggerTimer() if only_at_end else SecondOrStepTimer(every_n_secs, every_n_iter)

    def begin(self) -> None:
        self._timer.reset()
        self._count = 0
        self._tensors = {label: _element(item) for label, item in self._given.items()}

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        self._is_due = self._timer.should_trigger_for_step(self._count)
        return SessionRunArgs(self._tensors) if self._is_due else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._is_due:
            self._log(run_values.results)
        self._count += 1

    def end(self, session: Any) -> None:
        if self._at_end:
            self._log(session.run(self._tensors))

    def _log(self, values: dict[Any, Any]) -> None:
        seconds, _ = self._timer.update_last_triggered_step(self._count)
        with np.printoptions(suppress=True):
            if self._formatter is not None:
                text = self._formatter(values)
            else:
                text = ", ".join(f"{label} = {values[label]!s}" for label in self._labels)
                text += "" if seconds is None else f" ({seconds:.3f} sec)"
        _log.info("%s", text)


def _element(item: Any) -> Any:
    """Return what is fetched for a label. A name without a number is the one output of that operation; a variable's is its
    value.
    """
    graph = _tf.get_default_graph()
    if not isinstance(item, str):
        if getattr(item, "graph", None) is not graph:
            raise InvalidArgumentError(
                "a hook's tensor is not of the default graph", got=repr(item), hint="make the hook for this graph"
            )
        return item
    if ":" in item:
        graph.get_tensor_by_name(item)
        return item
    outputs = graph.get_operation_by_name(item).outputs
    if len(outputs) != 1:
        raise InvalidArgumentError(
            f"the operation {item!r} has {len(outputs)} outputs", hint=f"say which one: '{item}:0'"
        )
    return f"{item}:0"


class FinalOpsHook(SessionRunHook):
    """Runs something at the end, and keeps its values.

    Args:
      final_ops: fetches; None for nothing. final_ops_feed_dict: feeds.

    Attributes:
      final_ops_values: the values, after the end.
    """

    def __init__(self, final_ops: Any, final_ops_feed_dict: Mapping[Any, Any] | None = None) -> None:
        self._final_ops = final_ops
        self._feed_dict = final_ops_feed_dict
        self._values: Any = None

    @property
    def final_ops_values(self) -> Any:
        return self._values

    def end(self, session: Any) -> None:
        if self._final_ops is None:
            return
        try:
            self._values = session.run(self._final_ops, feed_dict=self._feed_dict)
        except (OutOfRangeError, StopIteration) as error:
            what = error.message if isinstance(error, GraphdockError) else repr(error)
            _log.warning("FinalOpsHook: what it runs reads an input that has no more elements: %s", what)
            raise


class FeedFnHook(SessionRunHook):
    """Feeds each step what a function returns.

    Args:
      feed_fn: without arguments, to a dict of tensor -> value.
    """

    def __init__(self, feed_fn: Callable[[], Mapping[Any, Any]]) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(None, self.feed_fn())
