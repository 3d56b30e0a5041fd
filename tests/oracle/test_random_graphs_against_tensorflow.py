"""The random programs of tests/differential under TensorFlow: values, first and second gradients, and static shapes."""

from __future__ import annotations

from pathlib import Path

import graphdock as tf
import numpy as np
import pytest

from tests.oracle.peer_programs import flat, peer, run

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

GENERATORS = Path(__file__).parents[1] / "differential"

#: Loads a generator whose ``import graphdock as tf`` gives the peer, and makes one program of it.
HEAD = f"""
import importlib.util, sys
def load(name):
    full = "graphdock_differential_" + name
    kept = {{key: sys.modules.get(key) for key in ("graphdock", full)}}
    spec = importlib.util.spec_from_file_location(full, {str(GENERATORS)!r} + "/" + name + ".py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["graphdock"], sys.modules[full] = tf, module
    spec.loader.exec_module(module)
    return module, kept
def back(kept):
    for key, module in kept.items():
        sys.modules.pop(key) if module is None else sys.modules.update({{key: module}})
graphs, first = load("random_graph")
sharing, second = load("sharing")
extremes, third = load("extremes")
for kept in (third, second, first):
    back(kept)
def slopes(ys, xs):
    found = tf.gradients(ys, xs)
    return [tf.zeros_like(x) if g is None else tf.convert_to_tensor(g) for g, x in zip(found, xs)]
"""

RUN = """
program = made.grow({length})
tensors = program.build(lambda i: {unknown!r})
feeds = {{tensors[i]: a for i, a in program.feeds.items()}}
facts["shapes"] = [None if t.shape.ndims is None else tuple(t.shape.as_list()) for t in tensors.values()]
facts["names"] = ["fed"] * len(program.feeds) + [step.what for step in program.steps for _ in step.outputs]
facts["dtypes"] = [t.dtype.name for t in tensors.values()]
fetches = {{"values": list(tensors.values())}}
expected = program.evaluate(program.feeds)
values["numpy"] = [np.asarray(expected[i]) for i in tensors]
if {gradients}:
    by = [tensors[i] for i, a in program.feeds.items() if a.dtype == np.float64]
    fetches["first"] = slopes(sharing.loss(tensors, sharing.differentiable(program, made.hidden)), by)
    fetches["second"] = slopes(tf.add_n([tf.reduce_sum(tf.sin(g)) for g in fetches["first"]]), by)
config = None
if tf.__name__.startswith("tensorflow"):
    # its graph optimiser gives another gradient for one of these programs
    config = tf.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
with tf.Session(config=config) as sess:
    for name, wanted in fetches.items():
        values[name] = [np.asarray(a) for a in sess.run(wanted, feeds)]
"""

#: Seeds; and one whose program derives roots at 0 where no gradient arrives.
SEEDS = {"graph": range(40), "sharing": (*range(40), 7017), "extremes": range(40)}
UNKNOWN = (None, "dims", "rank")


def text(kind: str, seed: int) -> str:
    fields = {"length": 8 + seed % 20, "unknown": UNKNOWN[seed % 3], "gradients": kind == "sharing"}
    makers = {
        "graph": f"graphs.Generator({seed}, feeds=3)",
        "sharing": f"sharing.Sharing({seed})",
        "extremes": f"extremes.Extremes({seed})",
    }
    return HEAD + f"made = {makers[kind]}\n" + RUN.format(**fields)


PROGRAMS = {f"{kind}-{seed}": text(kind, seed) for kind, seeds in SEEDS.items() for seed in seeds}


@pytest.fixture(scope="module")
def theirs():
    found = peer(PROGRAMS)
    if found is None:
        pytest.skip("TensorFlow is not installed")
    return found


def knows_as_much(ours, theirs):
    """Whether every dim that TensorFlow knows is known here, and is the same."""
    if theirs is None:
        return True
    return (
        ours is not None
        and len(ours) == len(theirs)
        and all(b is None or a == b for a, b in zip(ours, theirs, strict=True))
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(theirs, name):
    (facts, values), (peers, wanted) = run(tf, {name: PROGRAMS[name]})[name], theirs[name]
    assert (facts["names"], facts["dtypes"]) == (peers["names"], peers["dtypes"])
    for what, a, b in zip(facts["names"], facts["shapes"], peers["shapes"], strict=True):
        # numbers and dims of 1 broadcast in ours
        stretched = what == "where" and b is not None and (b == () or 1 in b)
        assert stretched or knows_as_much(a, b), f"{what}: {a}, TensorFlow knows {b}"
    wanted.pop("numpy")
    reference = values.pop("numpy")
    for kind, arrays in wanted.items():
        for i, (a, b) in enumerate(zip(flat(values[kind]), flat(arrays), strict=True)):
            assert (a.dtype, a.shape) == (b.dtype, b.shape), (kind, i)
            if kind != "values":  # the second gradient of x ** 1 is no number at 0
                b = np.where(np.isnan(b), a, b)
            # TensorFlow gives 2.5 for x - x + 1 in one of these programs: there NumPy is the judge
            assert close(a, b) or (kind == "values" and close(a, reference[i])), (
                f"{kind} {i}: {a}, TensorFlow's are {b}"
            )


def close(a, b):
    """Equal but for what another order of summation makes of a hundred operations."""
    if b.dtype.kind != "f":
        return np.array_equal(a, b)
    tolerance = 1e-8 if b.dtype == np.float64 else 2e-3
    size = np.abs(b[np.isfinite(b)]).max(initial=1)
    return np.allclose(a, b, rtol=tolerance, atol=tolerance * min(size, 1e6), equal_nan=True)
