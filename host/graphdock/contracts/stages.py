"""The pipeline: runs the named stages of planning, or of an executor's compilation, over one object."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from graphdock.contracts.executor import StageReport

__all__ = ["run_stages"]

T = TypeVar("T")


def run_stages(stages: Mapping[str, Callable[[T], None]], subject: T, debug: bool) -> list[StageReport]:
    """Run the stages in order over ``subject``; how long each took.

    Raises:
      whatever a stage raises; in debug mode its name is added as a note.
    """
    reports = []
    for name, stage in stages.items():
        start = time.perf_counter()
        try:
            stage(subject)
        except Exception as error:
            if debug:
                error.add_note(f"in the stage {name!r}")
            raise
        reports.append(StageReport(name, (time.perf_counter() - start) * 1e3))
    return reports
