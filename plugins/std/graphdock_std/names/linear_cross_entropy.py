"""What formulas of a linear layer with its cross-entropy may call."""

from __future__ import annotations

HELPERS = {
    "linear_logits": "graphdock_std.nn.linear_cross_entropy:linear_logits",
    "linear_slope": "graphdock_std.nn.linear_cross_entropy:linear_slope",
}
