"""Names of distributions."""

from __future__ import annotations

#: Public names that mean nothing in a formula: classes.
ENDPOINTS = {
    "distributions.Distribution": "graphdock_tf1.distributions.distribution:Distribution",
    "distributions.ReparameterizationType": "graphdock_tf1.distributions.distribution:ReparameterizationType",
    "distributions.FULLY_REPARAMETERIZED": "graphdock_tf1.distributions.distribution:FULLY_REPARAMETERIZED",
    "distributions.NOT_REPARAMETERIZED": "graphdock_tf1.distributions.distribution:NOT_REPARAMETERIZED",
    "distributions.RegisterKL": "graphdock_tf1.distributions.kullback_leibler:RegisterKL",
    "distributions.kl_divergence": "graphdock_tf1.distributions.kullback_leibler:kl_divergence",
    "distributions.Bernoulli": "graphdock_tf1.distributions.discrete:Bernoulli",
    "distributions.Categorical": "graphdock_tf1.distributions.discrete:Categorical",
    "distributions.Multinomial": "graphdock_tf1.distributions.discrete:Multinomial",
    "distributions.DirichletMultinomial": "graphdock_tf1.distributions.dirichlet_multinomial:DirichletMultinomial",
    "distributions.Beta": "graphdock_tf1.distributions.gamma:Beta",
    "distributions.Dirichlet": "graphdock_tf1.distributions.gamma:Dirichlet",
    "distributions.Exponential": "graphdock_tf1.distributions.gamma:Exponential",
    "distributions.Gamma": "graphdock_tf1.distributions.gamma:Gamma",
    "distributions.Laplace": "graphdock_tf1.distributions.location_scale:Laplace",
    "distributions.Normal": "graphdock_tf1.distributions.location_scale:Normal",
    "distributions.StudentT": "graphdock_tf1.distributions.location_scale:StudentT",
    "distributions.Uniform": "graphdock_tf1.distributions.location_scale:Uniform",
}
