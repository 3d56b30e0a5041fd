"""Names of optimizers, schedules, averages."""

from __future__ import annotations

#: Public names that mean nothing in a formula: classes, seeds, what takes a variable or keeps one.
ENDPOINTS = {
    "train.Optimizer": "graphdock_tf1.train.optimizer:Optimizer",
    "train.GradientDescentOptimizer": "graphdock_tf1.train.gradient_descent:GradientDescentOptimizer",
    "train.MomentumOptimizer": "graphdock_tf1.train.momentum:MomentumOptimizer",
    "train.AdagradOptimizer": "graphdock_tf1.train.adagrad:AdagradOptimizer",
    "train.AdamOptimizer": "graphdock_tf1.train.adam:AdamOptimizer",
    "train.AdamWOptimizer": "graphdock_tf1.train.adam_w:AdamWOptimizer",
    "train.RMSPropOptimizer": "graphdock_tf1.train.rmsprop:RMSPropOptimizer",
    "train.FtrlOptimizer": "graphdock_tf1.train.ftrl:FtrlOptimizer",
    "train.AdadeltaOptimizer": "graphdock_tf1.train.adadelta:AdadeltaOptimizer",
    "train.AdagradDAOptimizer": "graphdock_tf1.train.adagrad_da:AdagradDAOptimizer",
    "train.ProximalGradientDescentOptimizer": "graphdock_tf1.train.proximal:ProximalGradientDescentOptimizer",
    "train.ProximalAdagradOptimizer": "graphdock_tf1.train.proximal:ProximalAdagradOptimizer",
    "contrib.opt.LazyAdamOptimizer": "graphdock_tf1.train.lazy_adam:LazyAdamOptimizer",
    "contrib.opt.AdamWOptimizer": "graphdock_tf1.train.adam_w:AdamWOptimizer",
    "train.ExponentialMovingAverage": "graphdock_tf1.train.moving_averages:ExponentialMovingAverage",
    "train.exponential_decay": "graphdock_tf1.train.schedules:exponential_decay",
    "train.natural_exp_decay": "graphdock_tf1.train.schedules:natural_exp_decay",
    "train.inverse_time_decay": "graphdock_tf1.train.schedules:inverse_time_decay",
    "train.polynomial_decay": "graphdock_tf1.train.schedules:polynomial_decay",
    "train.cosine_decay": "graphdock_tf1.train.schedules:cosine_decay",
    "train.piecewise_constant": "graphdock_tf1.train.schedules:piecewise_constant",
    "train.piecewise_constant_decay": "graphdock_tf1.train.schedules:piecewise_constant_decay",
    "train.cosine_decay_restarts": "graphdock_tf1.train.schedules:cosine_decay_restarts",
    "train.linear_cosine_decay": "graphdock_tf1.train.schedules:linear_cosine_decay",
    "train.noisy_linear_cosine_decay": "graphdock_tf1.train.schedules:noisy_linear_cosine_decay",
    "train.assert_global_step": "graphdock_tf1.train.global_step:assert_global_step",
    "train.create_global_step": "graphdock_tf1.train.global_step:create_global_step",
    "train.get_global_step": "graphdock_tf1.train.global_step:get_global_step",
    "train.get_or_create_global_step": "graphdock_tf1.train.global_step:get_or_create_global_step",
    "train.global_step": "graphdock_tf1.train.global_step:global_step",
}
