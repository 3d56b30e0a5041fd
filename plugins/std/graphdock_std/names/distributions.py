"""Names of distributions."""

from __future__ import annotations

#: Public names that mean nothing in a formula: classes.
ENDPOINTS = {
    "distributions.Distribution": "graphdock_std.distributions.distribution:Distribution",
    "distributions.ReparameterizationType": "graphdock_std.distributions.distribution:ReparameterizationType",
    "distributions.FULLY_REPARAMETERIZED": "graphdock_std.distributions.distribution:FULLY_REPARAMETERIZED",
    "distributions.NOT_REPARAMETERIZED": "graphdock_std.distributions.distribution:NOT_REPARAMETERIZED",
    "distributions.RegisterKL": "graphdock_std.distributions.kullback_leibler:RegisterKL",
    "distributions.kl_divergence": "graphdock_std.distributions.kullback_leibler:kl_divergence",
    "distributions.Bernoulli": "graphdock_std.distributions.discrete:Bernoulli",
    "distributions.Categorical": "graphdock_std.distributions.discrete:Categorical",
    "distributions.Multinomial": "graphdock_std.distributions.discrete:Multinomial",
    "distributions.DirichletMultinomial": "graphdock_std.distributions.dirichlet_multinomial:DirichletMultinomial",
    "distributions.Beta": "graphdock_std.distributions.gamma:Beta",
    "distributions.Dirichlet": "graphdock_std.distributions.gamma:Dirichlet",
    "distributions.Exponential": "graphdock_std.distributions.gamma:Exponential",
    "distributions.Gamma": "graphdock_std.distributions.gamma:Gamma",
    "distributions.Laplace": "graphdock_std.distributions.location_scale:Laplace",
    "distributions.Normal": "graphdock_std.distributions.location_scale:Normal",
    "distributions.StudentT": "graphdock_std.distributions.location_scale:StudentT",
    "distributions.Uniform": "graphdock_std.distributions.location_scale:Uniform",
}
