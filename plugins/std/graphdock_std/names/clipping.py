"""Names of limits on the size of gradients."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "clip_by_norm": "graphdock_std.math.clipping:clip_by_norm",
    "clip_by_global_norm": "graphdock_std.math.clipping:clip_by_global_norm",
    "clip_by_average_norm": "graphdock_std.math.clipping:clip_by_average_norm",
    "global_norm": "graphdock_std.math.clipping:global_norm",
}
