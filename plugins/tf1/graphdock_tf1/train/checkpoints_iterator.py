"""Waiting for the checkpoints that another process writes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator

from graphdock_tf1.train.checkpoint_state import latest_checkpoint

_log = logging.getLogger("graphdock")

#: Seconds between two looks at the folder, in which another process writes: it wakes nobody here.
_POLL = 1.0


def checkpoints_iterator(
    checkpoint_dir: str,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:
    """The last checkpoint of a folder, again and again when it is a new one; those that come and go meanwhile are left out.

    Args:
      min_interval_secs: at least so many seconds lie between two. timeout: seconds that are waited for a new one; None for ever.
      timeout_fn: called when none has come in that time; it says whether that is the end. Default: it is.
    """
    last: str | None = None
    while True:
        found = _next(checkpoint_dir, last, timeout)
        if found is None:
            if timeout_fn is None:
                _log.info("Timed-out waiting for a checkpoint.")
            if timeout_fn is None or timeout_fn():
                return
            continue
        last, begun = found, time.monotonic()
        yield found
        rest = begun + min_interval_secs - time.monotonic()
        if rest > 0:
            time.sleep(rest)


def _next(folder: str, last: str | None, timeout: float | None) -> str | None:
    """The last checkpoint of the folder once it is another one; None if it is not in that time."""
    _log.info("Waiting for new checkpoint at %s", folder)
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        found = latest_checkpoint(folder)
        if found is not None and found != last:
            _log.info("Found new checkpoint at %s", found)
            return found
        if end is not None and time.monotonic() + _POLL > end:
            return None
        time.sleep(_POLL)
