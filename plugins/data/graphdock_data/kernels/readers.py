"""Kernels of readers. Those that read return a result, or the Future of it."""

from __future__ import annotations

from typing import Any

from graphdock.contracts import Bound, KernelDef

from graphdock_data.resources.files import texts
from graphdock_data.resources.reader import Reader, counted

__all__ = ["KERNELS"]


def _restore(reader: Reader, state: Any) -> None:
    reader.restore(state.item())


def _state(reader: Reader) -> Any:
    return texts(reader.state())


KERNELS = [
    KernelDef("ReaderReadV2", "host", lambda ctx: Bound(Reader.read), modes=("fresh",)),
    KernelDef("ReaderReadUpToV2", "host", lambda ctx: Bound(Reader.read_up_to), modes=("fresh",)),
    KernelDef("ReaderNumRecordsProducedV2", "host", lambda ctx: Bound(counted("records_produced")), modes=("fresh",)),
    KernelDef("ReaderNumWorkUnitsCompletedV2", "host", lambda ctx: Bound(counted("work_completed")), modes=("fresh",)),
    KernelDef("ReaderSerializeStateV2", "host", lambda ctx: Bound(_state), modes=("fresh",)),
    KernelDef("ReaderRestoreStateV2", "host", lambda ctx: Bound(_restore)),
    KernelDef("ReaderResetV2", "host", lambda ctx: Bound(Reader.reset)),
]
