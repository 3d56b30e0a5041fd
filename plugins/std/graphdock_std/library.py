"""The op library as the host reads it: the generated tables, with the operators that are written by hand."""

from __future__ import annotations

import os

from graphdock import ops as _ops

from graphdock_std._gen.opdefs import OPERATORS as _GENERATED
from graphdock_std._gen.opdefs import OPS

__all__ = ["OPERATORS", "OPS"]

#: Operator method -> ``"module:function"``. ``/`` casts integers first; an index becomes several ops.
OPERATORS: dict[str, str] = {
    **_GENERATED,
    "__truediv__": "graphdock_std.math:truediv",
    "__getitem__": "graphdock_std.indexing:getitem",
}

# an op made by a wrapper of this package was made at the user's line, not at the wrapper's
_ops.add_internal_folder(os.path.dirname(__file__))
