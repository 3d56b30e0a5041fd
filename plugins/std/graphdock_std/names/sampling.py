"""Names of what draws from distributions with parameters, or by a seed alone."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "multinomial": "graphdock_std.random.sampling:multinomial",
    "random_gamma": "graphdock_std.random.sampling:random_gamma",
    "random_poisson": "graphdock_std.random.sampling:random_poisson",
    "random.multinomial": "graphdock_std.random.sampling:multinomial",
    "random.categorical": "graphdock_std.random.sampling:categorical",
    "random.gamma": "graphdock_std.random.sampling:random_gamma",
    "random.poisson": "graphdock_std.random.sampling:random_poisson",
    "random.stateless_uniform": "graphdock_std.random.sampling:stateless_random_uniform",
    "random.stateless_normal": "graphdock_std.random.sampling:stateless_random_normal",
    "random.stateless_truncated_normal": "graphdock_std.random.sampling:stateless_truncated_normal",
    "random.stateless_multinomial": "graphdock_std.random.sampling:stateless_multinomial",
    "random.stateless_categorical": "graphdock_std.random.sampling:stateless_categorical",
}
