"""The plugin: kernels of the ops that write and read files. They work in host memory, for every backend."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphdock.contracts import KernelDef, hookimpl


@hookimpl
def register_kernels(host: Any) -> Iterable[KernelDef]:
    from graphdock_storage.kernels import checkpoint, summaries

    return [*checkpoint.kernels(lambda: host.checkpoint_formats.all()), *summaries.KERNELS]
