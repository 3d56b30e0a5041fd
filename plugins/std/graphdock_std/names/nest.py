"""Names of structures of Python values."""

from __future__ import annotations

#: Public names that mean nothing in a formula: they work on lists, tuples and dicts.
ENDPOINTS = {
    "nest.assert_same_structure": "graphdock_std.nest:assert_same_structure",
    "nest.flatten": "graphdock_std.nest:flatten",
    "nest.is_nested": "graphdock_std.nest:is_nested",
    "nest.map_structure": "graphdock_std.nest:map_structure",
    "nest.pack_sequence_as": "graphdock_std.nest:pack_sequence_as",
}
