"""The op library as the host reads it: the generated tables, with the operators that are written by hand."""

from __future__ import annotations

from graphdock_std._gen.opdefs import OPERATORS as _GENERATED
from graphdock_std._gen.opdefs import OPS
from graphdock_std.names import OPERATORS as _BY_HAND

__all__ = ["OPERATORS", "OPS"]

#: Operator method -> ``"module:function"``.
OPERATORS: dict[str, str] = {**_GENERATED, **_BY_HAND}
