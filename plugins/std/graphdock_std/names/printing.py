"""Names of what prints and of what looks for values that are not there yet."""

from __future__ import annotations

#: Public names that mean nothing in a formula: they return operations, or look at variables.
ENDPOINTS = {
    "print": "graphdock_std.io.printing:print_",
    "report_uninitialized_variables": "graphdock_std.variables.uninitialized:report_uninitialized_variables",
}
