"""The public names of the standard library: dotted name -> ``"module:attribute"``, strings only.

Importing this module loads neither NumPy nor the graph layer.
"""

from __future__ import annotations

from graphdock_std._gen.endpoints import ENDPOINTS as _GENERATED
from graphdock_std.names import ENDPOINTS as _OTHERS
from graphdock_std.names import FUNCTIONS

__all__ = ["ENDPOINTS"]

#: Every name stands in one of the three tables only: opgen refuses one that stands in two.
ENDPOINTS: dict[str, str] = {**_GENERATED, **FUNCTIONS, **_OTHERS}
