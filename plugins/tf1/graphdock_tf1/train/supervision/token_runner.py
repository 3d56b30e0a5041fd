"""TokenRunner: the thread that applies what replicas have gathered, and hands out tokens for the next step."""

from __future__ import annotations

from typing import Any

import graphdock as _tf

#: Seconds after which the wait for gradients is ended again, where the thread began it late.
_LOOK = 0.05


class TokenRunner(_tf.train.QueueRunner):
    """Runs the chief's step again and again, until the queue of tokens is closed or a Coordinator wants to stop.

    That step waits for gradients, which other replicas may never bring: stopping ends the wait. It closes the queue too, so that
    the other replicas end, unless a session that failed is to be made again: they go on then. Where a task was lost that the
    chief's own step has done with, nothing but this thread knows; so it begins the queue anew, which ends the waits for tokens.

    Args:
      queue: of the tokens. sync_op: the step. reset_op: begins the accumulators anew, which ends the wait. begin_op: the queue.
    """

    def __init__(self, queue: Any, sync_op: Any, reset_op: Any, begin_op: Any) -> None:
        closed = (_tf.errors.OutOfRangeError, _tf.errors.CancelledError)
        super().__init__(queue, [sync_op], queue_closed_exception_types=closed)
        self._reset_op, self._begin_op = reset_op, begin_op

    def _cancel_on_stop(self, sess: Any, coord: Any) -> None:
        coord.wait_for_stop()
        if getattr(coord, "is_followed", False) is None and self._may_be_followed(coord):
            self._run_quietly(sess, self._begin_op)
        while getattr(coord, "is_followed", False) is None and self._may_be_followed(coord):
            with self._end:
                self._end.wait(_LOOK)
        if not getattr(coord, "is_followed", False):
            self._run_quietly(sess, self.cancel_op)
        while not self._has_ended(sess):
            self._run_quietly(sess, self._reset_op)
            with self._end:
                self._end.wait_for(lambda: self._running.get(sess, 0) == 0, _LOOK)

    @staticmethod
    def _may_be_followed(coord: Any) -> bool:
        """Return whether it stopped for an error after which a session is made again; whoever closes this one knows."""
        try:
            coord.raise_requested_exception()
        except (_tf.errors.AbortedError, _tf.errors.UnavailableError):
            return True
        except Exception:  # noqa: BLE001 - it is raised where the threads are joined
            return False
        return False

    def _has_ended(self, sess: Any) -> bool:
        with self._lock:
            return self._running.get(sess, 0) == 0

    def _ended(self, sess: Any) -> bool:
        """One thread is done. The queue is closed by who stops, never by this."""
        super()._ended(sess)
        return False
