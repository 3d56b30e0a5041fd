"""Names of layers and losses written by hand."""

from __future__ import annotations

#: What formulas may call besides.
HELPERS = {"half_squares": "graphdock_std.nn.functions:half_squares"}

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "nn.bias_add": "graphdock_std.nn.functions:bias_add",
    "nn.l2_normalize": "graphdock_std.nn.functions:l2_normalize",
    "nn.log_softmax": "graphdock_std.nn.functions:log_softmax",
    "nn.moments": "graphdock_std.nn.functions:moments",
    "nn.log_poisson_loss": "graphdock_std.nn.cross_entropy:log_poisson_loss",
    "nn.sigmoid_cross_entropy_with_logits": "graphdock_std.nn.cross_entropy:sigmoid_cross_entropy_with_logits",
    "nn.softmax": "graphdock_std.nn.functions:softmax",
    "nn.softmax_cross_entropy_with_logits": "graphdock_std.nn.cross_entropy:softmax_cross_entropy_with_logits",
    "nn.softmax_cross_entropy_with_logits_v2": "graphdock_std.nn.cross_entropy:softmax_cross_entropy_with_logits_v2",
    "nn.sparse_softmax_cross_entropy_with_logits": "graphdock_std.nn.cross_entropy:sparse_softmax_cross_entropy_with_logits",
    "nn.weighted_cross_entropy_with_logits": "graphdock_std.nn.cross_entropy:weighted_cross_entropy_with_logits",
    "nn.relu_layer": "graphdock_std.nn.functions:relu_layer",
    "nn.xw_plus_b": "graphdock_std.nn.functions:xw_plus_b",
    "math.l2_normalize": "graphdock_std.nn.functions:l2_normalize",
    "linalg.l2_normalize": "graphdock_std.nn.functions:l2_normalize",
    "math.log_softmax": "graphdock_std.nn.functions:log_softmax",
    "math.softmax": "graphdock_std.nn.functions:softmax",
}

#: Public names that mean nothing in a formula: classes, seeds, what takes a variable or keeps one.
ENDPOINTS = {
    "nn.dropout": "graphdock_std.nn.functions:dropout",
    "nn.embedding_lookup": "graphdock_std.nn.embedding:embedding_lookup",
}
