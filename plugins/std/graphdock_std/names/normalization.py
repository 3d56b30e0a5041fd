"""Names of normalisation written by hand."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "nn.batch_norm_with_global_normalization": "graphdock_std.normalization.functions:batch_norm_with_global_normalization",
    "nn.batch_normalization": "graphdock_std.normalization.functions:batch_normalization",
    "nn.fused_batch_norm": "graphdock_std.normalization.functions:fused_batch_norm",
    "nn.instance_norm": "graphdock_std.normalization.layer_norm:instance_norm",
    "nn.layer_norm": "graphdock_std.normalization.layer_norm:layer_norm",
    "nn.normalize_moments": "graphdock_std.normalization.functions:normalize_moments",
    "nn.sufficient_statistics": "graphdock_std.normalization.functions:sufficient_statistics",
    "nn.weighted_moments": "graphdock_std.normalization.functions:weighted_moments",
}
