"""What formulas of fused ops may call."""

from __future__ import annotations

HELPERS = {
    "activate": "graphdock_std.nn.fused:activate",
    "attend": "graphdock_std.attention.functions:attend",
    "attend_log_sum": "graphdock_std.attention.functions:attend_log_sum",
    "attend_dropped": "graphdock_std.attention.dropped:attend_dropped",
    "attend_kept": "graphdock_std.attention.dropped:attend_kept",
    "attend_slopes": "graphdock_std.attention.functions:attend_slopes",
    "attend_weights": "graphdock_std.attention.functions:attend_weights",
    "convolved": "graphdock_std.nn.fused:convolved",
    "gelu_curve": "graphdock_std.nn.fused:gelu_curve",
    "gelu_slope": "graphdock_std.nn.fused:gelu_slope",
    "gelu_tanh_curve": "graphdock_std.nn.fused:gelu_tanh_curve",
    "gelu_tanh_slope": "graphdock_std.nn.fused:gelu_tanh_slope",
    "inner_sums": "graphdock_std.nn.fused:inner_sums",
    "lstm_gates_slope": "graphdock_std.nn.recurrent:lstm_gates_slope",
    "lstm_output": "graphdock_std.nn.recurrent:lstm_output",
    "lstm_state": "graphdock_std.nn.recurrent:lstm_state",
    "lstm_state_slope": "graphdock_std.nn.recurrent:lstm_state_slope",
    "rms_gamma_slope": "graphdock_std.normalization.rms_norm:rms_gamma_slope",
    "rms_inverse": "graphdock_std.normalization.rms_norm:rms_inverse",
    "rms_scaled": "graphdock_std.normalization.rms_norm:rms_scaled",
    "rms_slope": "graphdock_std.normalization.rms_norm:rms_slope",
    "softmax_loss": "graphdock_std.nn.loss_with_gradient:softmax_loss",
    "softmax_loss_gradient": "graphdock_std.nn.loss_with_gradient:softmax_loss_gradient",
    "sparse_softmax_loss": "graphdock_std.nn.loss_with_gradient:sparse_softmax_loss",
    "sparse_softmax_loss_gradient": "graphdock_std.nn.loss_with_gradient:sparse_softmax_loss_gradient",
    "turn": "graphdock_std.attention.rotary:turn",
}
