"""Names of layers."""

from __future__ import annotations

#: Public names that mean nothing in a formula: classes, and functions that make variables.
ENDPOINTS = {
    "layers.InputSpec": "graphdock_std.layers.input_spec:InputSpec",
    "layers.Layer": "graphdock_std.layers.base:Layer",
    "layers.Dense": "graphdock_std.layers.dense:Dense",
    "layers.dense": "graphdock_std.layers.dense:dense",
}
