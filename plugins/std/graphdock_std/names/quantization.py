"""Names of quantisation written by hand."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "quantize": "graphdock_std.quantization.functions:quantize",
    "quantize_v2": "graphdock_std.quantization.functions:quantize_v2",
    "quantization.quantize": "graphdock_std.quantization.functions:quantize",
}
