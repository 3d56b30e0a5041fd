"""Timer of a hook: every so many steps, or seconds."""

from __future__ import annotations

import time

from graphdock.errors import InvalidArgumentError


class SecondOrStepTimer:
    """Says at which steps something is due. The first step that it is asked of always is, and no step is twice.

    Args:
      every_secs: seconds from one time to the next. every_steps: steps. One of them is given.

    Raises:
      InvalidArgumentError: both are given, or none.
    """

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        if every_secs is None and every_steps is None:
            raise InvalidArgumentError("Either every_secs or every_steps should be provided.")
        if every_secs is not None and every_steps is not None:
            raise InvalidArgumentError("Can not provide both every_secs and every_steps.")
        self._every_secs = every_secs
        self._every_steps = every_steps
        self.reset()

    def reset(self) -> None:
        """Forget the last time."""
        self._last_step: int | None = None
        self._last_time = 0.0

    def should_trigger_for_step(self, step: int) -> bool:
        """Return whether something is due at this step."""
        if self._last_step is None:
            return True
        if step == self._last_step:
            return False
        if self._every_secs is not None:
            return time.time() >= self._last_time + self._every_secs
        assert self._every_steps is not None
        return step >= self._last_step + self._every_steps

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Note that it was done at this step; returns the seconds and the steps since the last time, or None and None."""
        now, last = time.time(), self._last_step
        elapsed = (None, None) if last is None else (now - self._last_time, step - last)
        self._last_step, self._last_time = step, now
        return elapsed

    def last_triggered_step(self) -> int | None:
        """The step at which it was done last; None before."""
        return self._last_step


class NeverTriggerTimer(SecondOrStepTimer):
    """Nothing is ever due."""

    def __init__(self) -> None:
        super().__init__(every_steps=1)

    def should_trigger_for_step(self, step: int) -> bool:
        return False

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        return None, None
