"""Names of optimizers, schedules, averages and clipping."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "clip_by_norm": "graphdock_std.train.clipping:clip_by_norm",
    "clip_by_global_norm": "graphdock_std.train.clipping:clip_by_global_norm",
    "clip_by_average_norm": "graphdock_std.train.clipping:clip_by_average_norm",
    "global_norm": "graphdock_std.train.clipping:global_norm",
}

#: Public names that mean nothing in a formula: classes, seeds, what takes a variable or keeps one.
ENDPOINTS = {
    "train.Optimizer": "graphdock_std.train.optimizer:Optimizer",
    "train.GradientDescentOptimizer": "graphdock_std.train.gradient_descent:GradientDescentOptimizer",
    "train.MomentumOptimizer": "graphdock_std.train.momentum:MomentumOptimizer",
    "train.AdagradOptimizer": "graphdock_std.train.adagrad:AdagradOptimizer",
    "train.AdamOptimizer": "graphdock_std.train.adam:AdamOptimizer",
    "train.AdamWOptimizer": "graphdock_std.train.adam_w:AdamWOptimizer",
    "train.RMSPropOptimizer": "graphdock_std.train.rmsprop:RMSPropOptimizer",
    "train.FtrlOptimizer": "graphdock_std.train.ftrl:FtrlOptimizer",
    "train.AdadeltaOptimizer": "graphdock_std.train.adadelta:AdadeltaOptimizer",
    "train.AdagradDAOptimizer": "graphdock_std.train.adagrad_da:AdagradDAOptimizer",
    "train.ProximalGradientDescentOptimizer": "graphdock_std.train.proximal:ProximalGradientDescentOptimizer",
    "train.ProximalAdagradOptimizer": "graphdock_std.train.proximal:ProximalAdagradOptimizer",
    "contrib.opt.LazyAdamOptimizer": "graphdock_std.train.lazy_adam:LazyAdamOptimizer",
    "contrib.opt.AdamWOptimizer": "graphdock_std.train.adam_w:AdamWOptimizer",
    "train.ExponentialMovingAverage": "graphdock_std.train.moving_averages:ExponentialMovingAverage",
    "train.exponential_decay": "graphdock_std.train.schedules:exponential_decay",
    "train.natural_exp_decay": "graphdock_std.train.schedules:natural_exp_decay",
    "train.inverse_time_decay": "graphdock_std.train.schedules:inverse_time_decay",
    "train.polynomial_decay": "graphdock_std.train.schedules:polynomial_decay",
    "train.cosine_decay": "graphdock_std.train.schedules:cosine_decay",
    "train.piecewise_constant": "graphdock_std.train.schedules:piecewise_constant",
    "train.piecewise_constant_decay": "graphdock_std.train.schedules:piecewise_constant_decay",
    "train.cosine_decay_restarts": "graphdock_std.train.schedules:cosine_decay_restarts",
    "train.linear_cosine_decay": "graphdock_std.train.schedules:linear_cosine_decay",
    "train.noisy_linear_cosine_decay": "graphdock_std.train.schedules:noisy_linear_cosine_decay",
    "train.assert_global_step": "graphdock_std.train.global_step:assert_global_step",
    "train.create_global_step": "graphdock_std.train.global_step:create_global_step",
    "train.get_global_step": "graphdock_std.train.global_step:get_global_step",
    "train.get_or_create_global_step": "graphdock_std.train.global_step:get_or_create_global_step",
    "train.global_step": "graphdock_std.train.global_step:global_step",
}
