"""Kernels of lookup tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef

from graphdock_data.resources.table import Table

__all__ = ["KERNELS"]


def _text_file(ctx: BuildContext) -> Bound:
    columns = (ctx.attr("key_index"), ctx.attr("value_index"), ctx.attr("vocab_size"))
    given = ctx.attr("delimiter")
    delimiter, offset = given if isinstance(given, bytes) else given.encode(), ctx.attr("offset")

    def compute(table: Table, filename: Any) -> None:
        table.load_text(filename.item(), *columns, delimiter, offset)

    return Bound(compute)


KERNELS = [
    KernelDef("LookupTableFindV2", "host", lambda ctx: Bound(Table.find), modes=("fresh",)),
    KernelDef("LookupTableInsertV2", "host", lambda ctx: Bound(Table.insert)),
    KernelDef("LookupTableRemoveV2", "host", lambda ctx: Bound(Table.remove)),
    KernelDef("LookupTableImportV2", "host", lambda ctx: Bound(Table.load)),
    KernelDef("InitializeTableFromTextFileV2", "host", _text_file),
    KernelDef(
        "LookupTableSizeV2",
        "host",
        lambda ctx: Bound(lambda table: np.array(len(table.rows), np.int64)),
        modes=("fresh",),
    ),
    KernelDef("LookupTableExportV2", "host", lambda ctx: Bound(Table.export), modes=("fresh",)),
]
