"""Names of what chooses, sorts and counts elements, and is written by hand."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "argsort": "graphdock_std.selection:argsort",
    "bincount": "graphdock_std.selection:bincount",
    "confusion_matrix": "graphdock_std.selection:confusion_matrix",
    "histogram_fixed_width": "graphdock_std.selection:histogram_fixed_width",
    "histogram_fixed_width_bins": "graphdock_std.selection:histogram_fixed_width_bins",
    "listdiff": "graphdock_std.selection:listdiff",
    "math.bincount": "graphdock_std.selection:bincount",
    "math.confusion_matrix": "graphdock_std.selection:confusion_matrix",
    "math.in_top_k": "graphdock_std.selection:in_top_k",
    "math.top_k": "graphdock_std.selection:top_k",
    "nn.in_top_k": "graphdock_std.selection:in_top_k",
    "nn.top_k": "graphdock_std.selection:top_k",
    "searchsorted": "graphdock_std.selection:searchsorted",
    "setdiff1d": "graphdock_std.selection:setdiff1d",
    "sort": "graphdock_std.selection:sort",
}
