"""Names of counters."""

from __future__ import annotations

#: Public names that mean nothing in a formula: what takes a variable.
ENDPOINTS = {"count_up_to": "graphdock_std.variables.counting:count_up_to"}
