"""Names of initialisers of variables."""

from __future__ import annotations

#: Public names that mean nothing in a formula: classes, seeds, what takes a variable or keeps one.
ENDPOINTS = {
    "zeros_initializer": "graphdock_std.variables.initializers:Zeros",
    "ones_initializer": "graphdock_std.variables.initializers:Ones",
    "constant_initializer": "graphdock_std.variables.initializers:Constant",
    "random_uniform_initializer": "graphdock_std.variables.initializers:RandomUniform",
    "random_normal_initializer": "graphdock_std.variables.initializers:RandomNormal",
    "truncated_normal_initializer": "graphdock_std.variables.initializers:TruncatedNormal",
    "variance_scaling_initializer": "graphdock_std.variables.initializers:VarianceScaling",
    "glorot_uniform_initializer": "graphdock_std.variables.initializers:GlorotUniform",
    "glorot_normal_initializer": "graphdock_std.variables.initializers:GlorotNormal",
    "initializers.zeros": "graphdock_std.variables.initializers:Zeros",
    "initializers.ones": "graphdock_std.variables.initializers:Ones",
    "initializers.constant": "graphdock_std.variables.initializers:Constant",
    "initializers.random_uniform": "graphdock_std.variables.initializers:RandomUniform",
    "initializers.random_normal": "graphdock_std.variables.initializers:RandomNormal",
    "initializers.truncated_normal": "graphdock_std.variables.initializers:TruncatedNormal",
    "initializers.variance_scaling": "graphdock_std.variables.initializers:VarianceScaling",
    "initializers.glorot_uniform": "graphdock_std.variables.initializers:GlorotUniform",
    "initializers.glorot_normal": "graphdock_std.variables.initializers:GlorotNormal",
    "initializers.he_uniform": "graphdock_std.variables.initializers:HeUniform",
    "initializers.he_normal": "graphdock_std.variables.initializers:HeNormal",
    "initializers.identity": "graphdock_std.variables.initializers:Identity",
    "initializers.lecun_normal": "graphdock_std.variables.initializers:LecunNormal",
    "initializers.lecun_uniform": "graphdock_std.variables.initializers:LecunUniform",
    "initializers.orthogonal": "graphdock_std.variables.initializers:Orthogonal",
    "initializers.uniform_unit_scaling": "graphdock_std.variables.initializers:UniformUnitScaling",
    "orthogonal_initializer": "graphdock_std.variables.initializers:Orthogonal",
    "uniform_unit_scaling_initializer": "graphdock_std.variables.initializers:UniformUnitScaling",
}
