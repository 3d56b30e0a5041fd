"""Oracle of names of files."""

from __future__ import annotations

from typing import Any

import numpy as np


def sharded_filename(basename: Any, shard: Any, num_shards: Any) -> Any:
    out = np.empty((), object)
    out[()] = basename[()] + f"-{int(shard):05d}-of-{int(num_shards):05d}".encode()
    return out
