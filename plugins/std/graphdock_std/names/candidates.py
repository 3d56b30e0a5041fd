"""Names of candidate samplers and the losses over sampled classes."""

from __future__ import annotations

#: Public names that mean nothing in a formula: classes, seeds, what takes a variable or keeps one.
ENDPOINTS = {
    "nn.all_candidate_sampler": "graphdock_std.nn.candidates:all_candidate_sampler",
    "nn.compute_accidental_hits": "graphdock_std.nn.candidates:compute_accidental_hits",
    "nn.fixed_unigram_candidate_sampler": "graphdock_std.nn.candidates:fixed_unigram_candidate_sampler",
    "nn.learned_unigram_candidate_sampler": "graphdock_std.nn.candidates:learned_unigram_candidate_sampler",
    "nn.log_uniform_candidate_sampler": "graphdock_std.nn.candidates:log_uniform_candidate_sampler",
    "nn.uniform_candidate_sampler": "graphdock_std.nn.candidates:uniform_candidate_sampler",
    "nn.nce_loss": "graphdock_std.nn.candidates:nce_loss",
    "nn.sampled_softmax_loss": "graphdock_std.nn.candidates:sampled_softmax_loss",
    "random.all_candidate_sampler": "graphdock_std.nn.candidates:all_candidate_sampler",
    "random.fixed_unigram_candidate_sampler": "graphdock_std.nn.candidates:fixed_unigram_candidate_sampler",
    "random.learned_unigram_candidate_sampler": "graphdock_std.nn.candidates:learned_unigram_candidate_sampler",
    "random.log_uniform_candidate_sampler": "graphdock_std.nn.candidates:log_uniform_candidate_sampler",
    "random.uniform_candidate_sampler": "graphdock_std.nn.candidates:uniform_candidate_sampler",
}
