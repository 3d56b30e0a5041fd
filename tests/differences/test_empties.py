"""Dims of size 0 and 1, in every family of ops, in plans for one shape and for any: values and gradients are TensorFlow's."""

from __future__ import annotations

import json
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest
from graphdock_testing import queued

from tests.differences import empties

ANSWERS = json.loads((Path(__file__).parent / "empties.json").read_text(encoding="utf-8"))
#: Gradients by filters of no image at all: TensorFlow leaves what lay in memory, here they are zero.
UNWRITTEN = ("conv2d of images", "depthwise_conv2d", "separable_conv2d", "conv2d_transpose")
#: What needs a rank or a depth when the graph is made: as in TensorFlow, which lets only map_fn and scan go without.
BOUND = ("layers", "dense", "rnn", "boolean_mask", "einsum", "softmax", "while_loop", "map_fn", "scan")
#: How much is known when the graph is made, and how a plan is made of it.
CONFIGS = {
    "exact": ("letters", {"shape_policy": "exact"}),
    "generic": ("letters", {"shape_policy": "generic"}),
    "known": ("known", {}),
    "no dims": ("dims", {"shape_policy": "generic"}),
    "no rank": ("rank", {"shape_policy": "generic"}),
    "debug": ("letters", {"shape_policy": "generic", "debug": True}),
    "queued": ("letters", {"backends": ("queued", "cpu")}),
}
CASES = {name: [c for c in empties.cases() if c[0] == name] for name in empties.PROGRAMS}


def agree(got, wanted):
    """Whether the shapes are equal, and the elements as far as they are kept."""
    return len(got) == len(wanted) and all(
        shape == other and np.allclose(np.array(a, float), np.array(b, float), 1e-3, 1e-5, equal_nan=True)
        for (shape, a), (other, b) in zip(got, wanted, strict=True)
    )


@pytest.mark.sampled(112)
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("name", empties.PROGRAMS)
def test_empties(name, config):
    kind, options = CONFIGS[config]
    host = tf.Host()
    if config == "queued":
        queued.install(host, seed=1)

    def session():
        return tf.Session(config=tf.SessionConfig(**options), host=host)

    for _, shapes, sizes in CASES[name]:
        both = empties.answer(tf, name, shapes, sizes, session, kind)
        for what, got, wanted in zip(("values", "gradients"), both, ANSWERS[empties.key(name, sizes)], strict=True):
            case = f"{what} of {name} where {sizes}"
            if wanted == "refused" or (what == "gradients" and name in UNWRITTEN and 0 in sizes.values()):
                continue
            if kind in ("dims", "rank") and both[0] is both[1] and name.startswith(BOUND):
                continue
            assert isinstance(got, list), f"{case}: {got}"
            assert agree(got, wanted), f"{case}: {got} instead of {wanted}"
