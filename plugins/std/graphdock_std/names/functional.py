"""Names of functions over rows."""

from __future__ import annotations

#: Public names that mean nothing in a formula: they take functions.
ENDPOINTS = {
    "foldl": "graphdock_std.functional:foldl",
    "foldr": "graphdock_std.functional:foldr",
    "map_fn": "graphdock_std.functional:map_fn",
    "scan": "graphdock_std.functional:scan",
}
