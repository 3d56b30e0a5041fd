"""The public names of the standard library: dotted name -> ``"module:attribute"``, strings only.

Importing this module loads neither NumPy nor the graph layer.
"""

from __future__ import annotations

from graphdock.contracts.public_names import spelled_out

from graphdock_std import names
from graphdock_std._gen.endpoints import ENDPOINTS as _GENERATED

__all__ = ["ENDPOINTS"]

#: Every name stands in one of the three tables only: opgen refuses one that stands in two.
ENDPOINTS: dict[str, str] = {**_GENERATED, **spelled_out(names.FUNCTIONS), **spelled_out(names.ENDPOINTS)}
