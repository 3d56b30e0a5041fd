"""Names of gradients of one's own."""

from __future__ import annotations

#: Public names that mean nothing in a formula: decorators, and what looks at the graph.
ENDPOINTS = {
    "custom_gradient": "graphdock_std.control.custom_gradient:custom_gradient",
    "hessians": "graphdock_std.control.custom_gradient:hessians",
}
