"""Names of random tensors and seeds."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "random_uniform": "graphdock_std.random.functions:random_uniform",
    "random_normal": "graphdock_std.random.functions:random_normal",
    "random_shuffle": "graphdock_std.random.functions:random_shuffle",
    "truncated_normal": "graphdock_std.random.functions:truncated_normal",
    "random.uniform": "graphdock_std.random.functions:random_uniform",
    "random.normal": "graphdock_std.random.functions:random_normal",
    "random.shuffle": "graphdock_std.random.functions:random_shuffle",
    "random.truncated_normal": "graphdock_std.random.functions:truncated_normal",
}

#: Public names that mean nothing in a formula: classes, seeds, what takes a variable or keeps one.
ENDPOINTS = {
    "set_random_seed": "graphdock_std.random.functions:set_random_seed",
    "get_seed": "graphdock_std.random.functions:get_seed",
    "random.set_random_seed": "graphdock_std.random.functions:set_random_seed",
    "random.get_seed": "graphdock_std.random.functions:get_seed",
}
