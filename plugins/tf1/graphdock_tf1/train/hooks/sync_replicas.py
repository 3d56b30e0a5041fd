"""The hook of SyncReplicasOptimizer: what replicas do before their first step, and after their last."""

from __future__ import annotations

import logging
from typing import Any

from graphdock.errors import CancelledError, FailedPreconditionError, InvalidArgumentError

from graphdock_tf1.train.hooks.run_hook import SessionRunHook

_log = logging.getLogger("graphdock")


class SyncReplicasHook(SessionRunHook):
    """Initialises a replica's step, and the chief's accumulators, tokens and thread; ends the others where its input has ended.

    Args:
      optimizer: a SyncReplicasOptimizer. is_chief: whether this is the chief's. num_tokens: tokens at the beginning.
    """

    def __init__(self, optimizer: Any, is_chief: bool, num_tokens: int) -> None:
        self._optimizer = optimizer
        self._is_chief = is_chief
        self._num_tokens = num_tokens
        self._runner: Any = None
        self._init_tokens_op: Any = None
        self._anew_op: Any = None
        self._is_in_step = False

    def begin(self) -> None:
        """Raises InvalidArgumentError: the optimizer's ``apply_gradients`` was not called."""
        optimizer = self._optimizer
        if not optimizer._gradients_applied:
            raise InvalidArgumentError("SyncReplicasOptimizer.apply_gradient should be called before using the hook.")
        self._local_init_op = optimizer.chief_init_op if self._is_chief else optimizer.local_step_init_op
        if self._is_chief:
            self._runner = optimizer.get_chief_queue_runner()
            self._init_tokens_op = optimizer.get_init_tokens_op(self._num_tokens)
            if not self._num_tokens and optimizer._required <= optimizer._total:
                self._local_init_op, self._anew_op = optimizer.local_step_init_op, optimizer._begin_once_op()

    def after_create_session(self, session: Any, coord: Any) -> None:
        missing = session.run(self._optimizer.ready_for_local_init_op)
        if missing.size:
            raise FailedPreconditionError(
                "Init operations did not make model ready for SyncReplicasOptimizer local_init.",
                got="variables without a value: " + ", ".join(name.decode() for name in missing),
            )
        self._is_in_step = False
        if self._anew_op is not None and session.run(self._anew_op):
            session.run(self._anew_op)
        session.run(self._local_init_op)
        if self._init_tokens_op is not None:
            session.run(self._init_tokens_op)
        if self._runner is not None:
            self._runner.create_threads(session, coord=coord, daemon=True, start=True)

    def before_run(self, run_context: Any) -> None:
        self._is_in_step = True

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._is_in_step = False

    def end(self, session: Any) -> None:
        """Close the queue of tokens where the last step found no more input; else give back the token of a next one."""
        try:
            session.run(self._optimizer._close_op if self._is_in_step else self._optimizer._return_token_op)
        except CancelledError as error:
            _log.debug("the queue of tokens is closed already: %s", error.message)
