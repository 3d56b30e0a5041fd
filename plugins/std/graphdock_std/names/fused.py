"""What formulas of fused ops may call."""

from __future__ import annotations

HELPERS = {
    "activate": "graphdock_std.fused:activate",
    "attend": "graphdock_std.attention:attend",
    "attend_log_sum": "graphdock_std.attention:attend_log_sum",
    "attend_weights": "graphdock_std.attention:attend_weights",
}
