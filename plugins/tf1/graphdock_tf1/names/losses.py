"""Names of losses."""

from __future__ import annotations

#: Public names that mean nothing in a formula: what collects losses.
ENDPOINTS = {
    "losses.Reduction": "graphdock_tf1.losses.weighted:Reduction",
    "losses.compute_weighted_loss": "graphdock_tf1.losses.weighted:compute_weighted_loss",
    "losses.add_loss": "graphdock_tf1.losses.collected:add_loss",
    "losses.get_losses": "graphdock_tf1.losses.collected:get_losses",
    "losses.get_regularization_loss": "graphdock_tf1.losses.collected:get_regularization_loss",
    "losses.get_regularization_losses": "graphdock_tf1.losses.collected:get_regularization_losses",
    "losses.get_total_loss": "graphdock_tf1.losses.collected:get_total_loss",
    "losses.absolute_difference": "graphdock_tf1.losses.regression:absolute_difference",
    "losses.cosine_distance": "graphdock_tf1.losses.regression:cosine_distance",
    "losses.hinge_loss": "graphdock_tf1.losses.regression:hinge_loss",
    "losses.huber_loss": "graphdock_tf1.losses.regression:huber_loss",
    "losses.log_loss": "graphdock_tf1.losses.regression:log_loss",
    "losses.mean_pairwise_squared_error": "graphdock_tf1.losses.regression:mean_pairwise_squared_error",
    "losses.mean_squared_error": "graphdock_tf1.losses.regression:mean_squared_error",
    "losses.sigmoid_cross_entropy": "graphdock_tf1.losses.classification:sigmoid_cross_entropy",
    "losses.softmax_cross_entropy": "graphdock_tf1.losses.classification:softmax_cross_entropy",
    "losses.sparse_softmax_cross_entropy": "graphdock_tf1.losses.classification:sparse_softmax_cross_entropy",
}
