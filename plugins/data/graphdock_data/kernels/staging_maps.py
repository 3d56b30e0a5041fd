"""Kernels of staging maps. Those that may wait return a result, or the Future of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from graphdock.contracts import Bound, BuildContext, KernelDef

from graphdock_data.resources.staging_map import StagingMap

__all__ = ["KERNELS"]


def _put(ctx: BuildContext) -> Bound:
    indices = tuple(ctx.attr("indices"))
    return Bound(lambda area, key, *values: area.put(indices, key, *values), retains=tuple(range(2, len(ctx.inputs))))


def _by_key(method: Callable[..., Any], ctx: BuildContext) -> Bound:
    indices = tuple(ctx.attr("indices"))
    return Bound(lambda area, key: method(area, indices, key))


def _any(ctx: BuildContext) -> Bound:
    indices = tuple(ctx.attr("indices"))
    return Bound(lambda area: area.get_any(indices))


KERNELS = [
    KernelDef("GraphdockMapStage", "host", _put, modes=("fresh",)),
    KernelDef("GraphdockMapUnstage", "host", partial(_by_key, StagingMap.get), modes=("fresh",)),
    KernelDef("GraphdockMapUnstageNoKey", "host", _any, modes=("fresh",)),
    KernelDef("GraphdockMapPeek", "host", partial(_by_key, StagingMap.peek), modes=("fresh",)),
    KernelDef("GraphdockMapSize", "host", lambda ctx: Bound(StagingMap.size), modes=("fresh",)),
    KernelDef("GraphdockMapIncompleteSize", "host", lambda ctx: Bound(StagingMap.incomplete_size), modes=("fresh",)),
    KernelDef("GraphdockMapClear", "host", lambda ctx: Bound(StagingMap.clear)),
]
