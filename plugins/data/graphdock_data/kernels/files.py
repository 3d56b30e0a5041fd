"""Kernels that read and write files as a whole, and find them."""

from __future__ import annotations

import os
from typing import Any

from graphdock.contracts import Bound, BuildContext, KernelDef, errors
from graphdock_storage.checkpoint.files import explained
from graphdock_storage.stores import opened, system

from graphdock_data.resources.files import matching, read_whole, texts

__all__ = ["KERNELS"]


def _read(ctx: BuildContext) -> Bound:
    return Bound(lambda name: texts(read_whole(name.item())))


def _write(ctx: BuildContext) -> Bound:
    def compute(name: Any, contents: Any) -> None:
        path = os.fsdecode(name.item())
        try:
            folder = os.path.dirname(path)
            if folder:
                system(folder).makedirs(folder)
            with opened(path, "wb") as file:
                file.write(contents.item())
        except (OSError, ValueError) as error:
            raise explained(error, "cannot write", path) from error

    return Bound(compute)


def _matching(ctx: BuildContext) -> Bound:
    def compute(patterns: Any) -> Any:
        if patterns.ndim > 1:
            raise errors.ShapeError("patterns are a scalar or a vector", got=f"rank {patterns.ndim}")
        return texts(sorted({path for pattern in patterns.ravel() for path in matching(pattern)}))

    return Bound(compute)


KERNELS = [
    KernelDef("ReadFile", "host", _read, modes=("fresh",)),
    KernelDef("WriteFile", "host", _write),
    KernelDef("MatchingFiles", "host", _matching, modes=("fresh",)),
]
