"""Oracle of counters. It returns the value before, and the variable's new one."""

from __future__ import annotations

from typing import Any

import numpy as np


def resource_count_up_to(resource: Any, limit: int, **_: Any) -> list[np.ndarray]:
    now, *later = range(int(resource), limit + 1)[:2]
    dtype = np.asarray(resource).dtype
    return [np.array(now, dtype), np.array(later[0] if later else now, dtype)]
