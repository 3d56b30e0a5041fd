"""Training: optimizers and the global step, under ``tf.train``."""

from __future__ import annotations

ENDPOINTS: dict[str, str] = {
    "train.Optimizer": "graphdock_std.train.optimizer:Optimizer",
    "train.GradientDescentOptimizer": "graphdock_std.train.gradient_descent:GradientDescentOptimizer",
    "train.MomentumOptimizer": "graphdock_std.train.momentum:MomentumOptimizer",
    "train.AdagradOptimizer": "graphdock_std.train.adagrad:AdagradOptimizer",
    "train.AdamOptimizer": "graphdock_std.train.adam:AdamOptimizer",
    "train.create_global_step": "graphdock_std.train.global_step:create_global_step",
    "train.get_global_step": "graphdock_std.train.global_step:get_global_step",
    "train.get_or_create_global_step": "graphdock_std.train.global_step:get_or_create_global_step",
    "train.global_step": "graphdock_std.train.global_step:global_step",
}
