"""The op library as the host reads it: the generated tables, with the operators that are written by hand."""

from __future__ import annotations

from graphdock_std._gen.opdefs import OPERATORS as _GENERATED
from graphdock_std._gen.opdefs import OPS

__all__ = ["OPERATORS", "OPS"]

#: Operator method -> ``"module:function"``. ``/`` casts integers first; an index becomes several ops.
OPERATORS: dict[str, str] = {
    **_GENERATED,
    "__truediv__": "graphdock_std.math:truediv",
    "__getitem__": "graphdock_std.indexing:getitem",
}
