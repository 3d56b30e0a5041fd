"""Random distributions and what is asked of them: parameters and samples of random shapes, known or not, and now and then unfit.

A case is JSON: kind, parameters, sample, method and switches. What it leaves: its static shape, its shape in the run, values, or
where it was refused. This module imports nothing of graphdock's: the peer runs it too.
"""

from __future__ import annotations

import random

import numpy as np

#: Kind -> parameters, each of one of the domains below.
KINDS = {
    "Normal": {"loc": "real", "scale": "positive"},
    "Laplace": {"loc": "real", "scale": "positive"},
    "StudentT": {"df": "positive", "loc": "real", "scale": "positive"},
    "Uniform": {"low": "low", "high": "high"},
    "Gamma": {"concentration": "positive", "rate": "positive"},
    "Exponential": {"rate": "positive"},
    "Beta": {"concentration1": "positive", "concentration0": "positive"},
    "Bernoulli": {"probs": "unit"},
    "Categorical": {"probs": "simplex"},
    "Dirichlet": {"concentration": "vector"},
    "Multinomial": {"total_count": "count", "probs": "simplex"},
    "DirichletMultinomial": {"total_count": "count", "concentration": "vector"},
}
#: Kind -> where its samples are.
SUPPORT = dict.fromkeys(("Normal", "Laplace", "StudentT", "Uniform"), "real")
SUPPORT |= {
    "Gamma": "positive",
    "Exponential": "positive",
    "Beta": "inside",
    "Bernoulli": "bit",
    "Categorical": "class",
}
SUPPORT |= {"Dirichlet": "simplex", "Multinomial": "counts", "DirichletMultinomial": "counts"}
OF_SAMPLES = ("prob", "log_prob", "cdf", "log_cdf", "survival_function", "log_survival_function", "quantile")
STATISTICS = ("mean", "mode", "variance", "stddev", "covariance", "entropy", "sample")
VECTORS = ("simplex", "vector", "counts")
COUNT = 3


def case(seed: int) -> dict:
    """One case; ``fits`` says whether all values are where they belong."""
    r = random.Random(seed)
    kind = r.choice(sorted(KINDS))
    batch = [r.randint(1, 3) for _ in range(r.randint(0, 3))]
    size = r.randint(2, 4)
    method = r.choice(OF_SAMPLES if r.random() < 0.65 else STATISTICS)
    validate = r.random() < 0.6
    found = {
        "kind": kind, "method": method, "validate": validate, "allow_nan": r.random() < 0.8, "fits": True, "tensors": {},
        "dtype": r.choice(["float32", "float64"]),
    }  # fmt: skip
    domains = dict(KINDS[kind])
    if method in OF_SAMPLES:
        domains["value"] = "unit" if method == "quantile" else SUPPORT[kind]
    wrong = r.choice([*domains]) if validate and r.random() < 0.5 else None
    far = random.Random(f"far {seed}").choice([1.0, 1.0, 1.0, 20.0, 50.0])
    for name, domain in domains.items():
        shape = batch[len(batch) - r.randint(0, len(batch)) :]
        shape = [d if r.random() < 0.75 else 1 for d in shape] + ([size] if domain in VECTORS else [])
        values, spoilt = _values(r, domain, shape, name == wrong)
        if name == "value" and domain in ("real", "positive"):
            values = values * far  # into the tails
        values = [float(np.dtype(found["dtype"]).type(v)) for v in values]
        found["fits"] &= not spoilt
        found["tensors"][name] = {"known": _hidden(r, shape), "shape": shape, "values": values}
    return found


def _hidden(r, shape):
    """As much of a shape as the graph is told; all of it where the tensor is to be a constant (``"constant"``)."""
    drawn = r.random()
    if drawn < 0.3:
        return "constant"
    return shape if drawn < 0.55 else None if drawn < 0.7 else [d if r.random() < 0.5 else None for d in shape]


def _values(r, domain, shape, wrong):
    count = int(np.prod(shape))
    rng = np.random.RandomState(r.randint(0, 2**30))
    spoilt = wrong and count > 0 and domain != "real"
    if domain in ("simplex", "counts", "vector"):
        v = rng.uniform(0.2, 3.0, shape)
        if domain == "simplex":
            v = v / v.sum(-1, keepdims=True)
        if domain == "counts":
            v = np.zeros(shape)
            for place in np.ndindex(*shape[:-1]):
                v[place] = np.bincount(rng.randint(0, shape[-1], COUNT), minlength=shape[-1])
        v = v.reshape(-1)
        if spoilt and domain == "counts":
            v[rng.randint(count)] += r.choice([1.0, -4.0, 0.5])
        elif spoilt:
            v[rng.randint(count)] = r.choice([-0.5, -3.0])
    else:
        low, high, bad = {
            "real": (-3, 3, [0.0]), "positive": (0.2, 4, [0.0, -1.0]), "low": (-2, 0, [5.0]), "high": (1, 3, [-3.0]),
            "unit": (0.05, 0.95, [1.5, -0.5]), "inside": (0.05, 0.95, [0.0, 1.0, 2.0, -1.0]), "count": (COUNT, COUNT, [-1.0, 2.5]),
            "bit": (0, 2, [2.0, -1.0]), "class": (0, 2, [-1.0]),
        }[domain]  # fmt: skip
        v = rng.uniform(low, high, count)
        v = np.floor(v) if domain in ("bit", "class") else v
        if spoilt:
            v[rng.randint(count)] = r.choice(bad)
    return v, bool(spoilt)


def answer(tf, case) -> dict:
    """What a framework leaves of a case."""
    D = tf.distributions
    feed, made = {}, {}
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        for name, t in case["tensors"].items():
            whole = case["kind"] in ("Bernoulli", "Categorical") and name == "value" and case["method"] != "quantile"
            array = np.array(t["values"], "int32" if whole else case["dtype"]).reshape(t["shape"])
            if t["known"] == "constant":
                made[name] = tf.constant(array)
            else:
                made[name] = tf.placeholder(array.dtype.name, t["known"])
                feed[made[name]] = array
        sample = [made.pop("value")] if "value" in made else []
        switches = {"validate_args": case["validate"], "allow_nan_stats": case["allow_nan"]}
        try:
            d = getattr(D, case["kind"])(**made, **switches)
            found = getattr(d, case["method"])(*sample, **({"sample_shape": [2]} if case["method"] == "sample" else {}))
        except NotImplementedError:
            return {"refused": "unimplemented"}
        except (ValueError, TypeError, tf.errors.OpError):
            return {"refused": "yes"}
        left = {"static": None if found.shape.ndims is None else found.shape.as_list()}
        try:
            value = session.run(found, feed)
        except tf.errors.OpError as error:
            return {"refused": "yes", "said": type(error).__name__}
        left |= {"shape": list(value.shape), "dtype": value.dtype.name}
        if case["method"] != "sample":
            left["values"] = [float(v) for v in value.reshape(-1)]
        return left


def broadcast_in(case) -> dict:
    """The tensors whose shapes make that of the answer: all, but that the mode of StudentT is ``loc`` as it is."""
    loc = case["kind"] == "StudentT" and case["method"] == "mode"
    return {n: t for n, t in case["tensors"].items() if n == "loc" or not loc}


def whole_shape(case) -> list:
    """The shape of what a method gives, by NumPy's broadcasting."""
    kind, method = case["kind"], case["method"]
    batches, event = [], []
    for name, t in broadcast_in(case).items():
        domain = SUPPORT[kind] if name == "value" else KINDS[kind][name]
        cut = domain in VECTORS
        batches.append(t["shape"][:-1] if cut else t["shape"])
        event = t["shape"][-1:] if cut else event
    batch = [*np.broadcast_shapes(*map(tuple, batches))]
    if method in OF_SAMPLES or kind == "Categorical":
        event = []
    if method == "covariance":
        event = event * 2
    if method == "entropy":
        event = []
    return ([2] if method == "sample" else []) + batch + event


def comparable(case, theirs) -> bool:
    """Whether TensorFlow's answer is one: it refuses some broadcasts, or leaves out dims."""
    if "refused" in theirs:
        return theirs["refused"] != "yes" or not case["fits"]
    members = (case["kind"], case["method"]) == ("Dirichlet", "mode")  # NaN by element there, by member here
    return theirs["shape"] == whole_shape(case) and not members
