"""Names of activations written by hand."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "log_sigmoid": "graphdock_std.nn.activations:log_sigmoid",
    "math.log_sigmoid": "graphdock_std.nn.activations:log_sigmoid",
    "math.zero_fraction": "graphdock_std.nn.activations:zero_fraction",
    "nn.crelu": "graphdock_std.nn.activations:crelu",
    "nn.leaky_relu": "graphdock_std.nn.activations:leaky_relu",
    "nn.swish": "graphdock_std.nn.activations:swish",
    "nn.zero_fraction": "graphdock_std.nn.activations:zero_fraction",
}
