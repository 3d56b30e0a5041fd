"""Names of connectionist temporal classification."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "nn.ctc_beam_search_decoder": "graphdock_std.nn.ctc:ctc_beam_search_decoder",
    "nn.ctc_greedy_decoder": "graphdock_std.nn.ctc:ctc_greedy_decoder",
    "nn.ctc_loss": "graphdock_std.nn.ctc:ctc_loss",
}
