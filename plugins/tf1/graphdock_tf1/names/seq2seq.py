"""Names of ``tf.contrib.seq2seq``."""

from __future__ import annotations

#: Public names that mean nothing in a formula: classes, and functions that make variables.
ENDPOINTS = {
    "contrib.seq2seq.AttentionMechanism": "graphdock_tf1.seq2seq.attention:AttentionMechanism",
    "contrib.seq2seq.AttentionWrapper": "graphdock_tf1.seq2seq.wrapper:AttentionWrapper",
    "contrib.seq2seq.AttentionWrapperState": "graphdock_tf1.seq2seq.wrapper:AttentionWrapperState",
    "contrib.seq2seq.BahdanauAttention": "graphdock_tf1.seq2seq.attention:BahdanauAttention",
    "contrib.seq2seq.BasicDecoder": "graphdock_tf1.seq2seq.decoder:BasicDecoder",
    "contrib.seq2seq.BasicDecoderOutput": "graphdock_tf1.seq2seq.decoder:BasicDecoderOutput",
    "contrib.seq2seq.BeamSearchDecoder": "graphdock_tf1.seq2seq.beam_search:BeamSearchDecoder",
    "contrib.seq2seq.BeamSearchDecoderOutput": "graphdock_tf1.seq2seq.beam_search:BeamSearchDecoderOutput",
    "contrib.seq2seq.BeamSearchDecoderState": "graphdock_tf1.seq2seq.beam_search:BeamSearchDecoderState",
    "contrib.seq2seq.CustomHelper": "graphdock_tf1.seq2seq.helper:CustomHelper",
    "contrib.seq2seq.Decoder": "graphdock_tf1.seq2seq.decoder:Decoder",
    "contrib.seq2seq.FinalBeamSearchDecoderOutput": "graphdock_tf1.seq2seq.beam_search:FinalBeamSearchDecoderOutput",
    "contrib.seq2seq.GreedyEmbeddingHelper": "graphdock_tf1.seq2seq.helper:GreedyEmbeddingHelper",
    "contrib.seq2seq.Helper": "graphdock_tf1.seq2seq.helper:Helper",
    "contrib.seq2seq.LuongAttention": "graphdock_tf1.seq2seq.attention:LuongAttention",
    "contrib.seq2seq.SampleEmbeddingHelper": "graphdock_tf1.seq2seq.helper:SampleEmbeddingHelper",
    "contrib.seq2seq.ScheduledEmbeddingTrainingHelper": "graphdock_tf1.seq2seq.helper:ScheduledEmbeddingTrainingHelper",
    "contrib.seq2seq.TrainingHelper": "graphdock_tf1.seq2seq.helper:TrainingHelper",
    "contrib.seq2seq.dynamic_decode": "graphdock_tf1.seq2seq.decoder:dynamic_decode",
    "contrib.seq2seq.gather_tree": "graphdock_tf1.seq2seq.gather_tree:gather_tree",
    "contrib.seq2seq.sequence_loss": "graphdock_tf1.seq2seq.loss:sequence_loss",
    "contrib.seq2seq.tile_batch": "graphdock_tf1.seq2seq.wrapper:tile_batch",
}
