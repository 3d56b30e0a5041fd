"""Names of initialisers of variables."""

from __future__ import annotations

#: Public names that mean nothing in a formula: classes, seeds, what takes a variable or keeps one.
ENDPOINTS = {
    "zeros_initializer": "graphdock_std.initializers:Zeros",
    "ones_initializer": "graphdock_std.initializers:Ones",
    "constant_initializer": "graphdock_std.initializers:Constant",
    "random_uniform_initializer": "graphdock_std.initializers:RandomUniform",
    "random_normal_initializer": "graphdock_std.initializers:RandomNormal",
    "truncated_normal_initializer": "graphdock_std.initializers:TruncatedNormal",
    "variance_scaling_initializer": "graphdock_std.initializers:VarianceScaling",
    "glorot_uniform_initializer": "graphdock_std.initializers:GlorotUniform",
    "glorot_normal_initializer": "graphdock_std.initializers:GlorotNormal",
    "initializers.zeros": "graphdock_std.initializers:Zeros",
    "initializers.ones": "graphdock_std.initializers:Ones",
    "initializers.constant": "graphdock_std.initializers:Constant",
    "initializers.random_uniform": "graphdock_std.initializers:RandomUniform",
    "initializers.random_normal": "graphdock_std.initializers:RandomNormal",
    "initializers.truncated_normal": "graphdock_std.initializers:TruncatedNormal",
    "initializers.variance_scaling": "graphdock_std.initializers:VarianceScaling",
    "initializers.glorot_uniform": "graphdock_std.initializers:GlorotUniform",
    "initializers.glorot_normal": "graphdock_std.initializers:GlorotNormal",
    "initializers.he_uniform": "graphdock_std.initializers:HeUniform",
    "initializers.he_normal": "graphdock_std.initializers:HeNormal",
    "initializers.identity": "graphdock_std.initializers:Identity",
    "initializers.lecun_normal": "graphdock_std.initializers:LecunNormal",
    "initializers.lecun_uniform": "graphdock_std.initializers:LecunUniform",
    "initializers.orthogonal": "graphdock_std.initializers:Orthogonal",
    "initializers.uniform_unit_scaling": "graphdock_std.initializers:UniformUnitScaling",
    "orthogonal_initializer": "graphdock_std.initializers:Orthogonal",
    "uniform_unit_scaling_initializer": "graphdock_std.initializers:UniformUnitScaling",
}
