"""Names of quantisation written by hand."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "dequantize": "graphdock_std.quantization:dequantize",
    "quantize": "graphdock_std.quantization:quantize",
    "quantize_v2": "graphdock_std.quantization:quantize_v2",
    "quantization.dequantize": "graphdock_std.quantization:dequantize",
    "quantization.quantize": "graphdock_std.quantization:quantize",
    "quantization.quantize_and_dequantize": "graphdock_std.quantization:quantize_and_dequantize",
}
