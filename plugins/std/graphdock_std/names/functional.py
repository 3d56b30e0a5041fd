"""Names of functions over rows."""

from __future__ import annotations

#: Public names that mean nothing in a formula: they take functions.
ENDPOINTS = {
    "foldl": "graphdock_std.control.functional:foldl",
    "foldr": "graphdock_std.control.functional:foldr",
    "map_fn": "graphdock_std.control.functional:map_fn",
    "scan": "graphdock_std.control.functional:scan",
}
