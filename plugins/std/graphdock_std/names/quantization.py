"""Names of quantisation written by hand."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "dequantize": "graphdock_std.quantization.functions:dequantize",
    "quantize": "graphdock_std.quantization.functions:quantize",
    "quantize_v2": "graphdock_std.quantization.functions:quantize_v2",
    "quantization.dequantize": "graphdock_std.quantization.functions:dequantize",
    "quantization.quantize": "graphdock_std.quantization.functions:quantize",
    "quantization.quantize_and_dequantize": "graphdock_std.quantization.functions:quantize_and_dequantize",
}
