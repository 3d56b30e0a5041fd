"""Names of what chooses, sorts and counts elements, and is written by hand."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "argsort": "graphdock_std.array.selection:argsort",
    "bincount": "graphdock_std.array.selection:bincount",
    "confusion_matrix": "graphdock_std.array.selection:confusion_matrix",
    "histogram_fixed_width": "graphdock_std.array.selection:histogram_fixed_width",
    "histogram_fixed_width_bins": "graphdock_std.array.selection:histogram_fixed_width_bins",
    "listdiff": "graphdock_std.array.selection:listdiff",
    "math.bincount": "graphdock_std.array.selection:bincount",
    "math.confusion_matrix": "graphdock_std.array.selection:confusion_matrix",
    "math.in_top_k": "graphdock_std.array.selection:in_top_k",
    "math.top_k": "graphdock_std.array.selection:top_k",
    "nn.in_top_k": "graphdock_std.array.selection:in_top_k",
    "nn.top_k": "graphdock_std.array.selection:top_k",
    "searchsorted": "graphdock_std.array.selection:searchsorted",
    "setdiff1d": "graphdock_std.array.selection:setdiff1d",
    "sort": "graphdock_std.array.selection:sort",
}
