"""On a real GPU: what fuses is one launch, kernels of benchmarks and training steps agree with the cpu. ``pytest -m gpu``."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import GraphdockError
from graphdock.ops import apply_op
from graphdock.plugin.host import Host

from benchmarks.gpu_kernels import CASES, graphdock_kernel

pytestmark = [pytest.mark.gpu, pytest.mark.slow]
BACKENDS = ("triton", "cuda", "cpu")

_path = Path(__file__).parents[3] / "cuda" / "tests" / "steps" / "programs.py"
_spec = importlib.util.spec_from_file_location("triton_gpu_programs", _path)
assert _spec is not None and _spec.loader is not None
programs: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)


@pytest.fixture(scope="module")
def host() -> Host:
    found = Host()
    try:
        found.backend("triton")
        found.open_device("/device:cuda:0")
    except GraphdockError as error:
        pytest.skip(str(error.message))
    return found


@pytest.mark.parametrize("name", ["gelu", "power"])
def test_a_formula_by_hand_is_one_launch_each_way(host: Host, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted where the driver is called, while the step is recorded."""
    driver, counts = host.open_device("/device:cuda:0").driver, []  # type: ignore[attr-defined]
    launch = driver.launch
    monkeypatch.setattr(driver, "launch", lambda *args: (counts.append(args[0]), launch(*args))[1])
    x0 = np.random.default_rng(1).standard_normal((333, 65)).astype(np.float32)
    found = []
    for backends in (BACKENDS, ("cpu",)):
        with tf.Graph(host=host).as_default():
            x = tf.Variable(x0)
            y = 0.5 * x * (1 + tf.tanh(0.7978845608 * (x + 0.044715 * x * x * x))) if name == "gelu" else x * x * x * x
            into = [tf.Variable(tf.zeros(x0.shape)) for _ in range(2)]
            made = [y, *tf.gradients(y, [x])]
            step = tf.group(*[v.assign(t) for v, t in zip(into, made, strict=True)])
            with tf.Session(config=tf.SessionConfig(backends=backends), host=host) as session:
                session.run(tf.global_variables_initializer())
                counts.clear()
                session.run(step)
                if backends == BACKENDS:
                    assert len(counts) == 1, session.explain(step)
                    assert session.explain(step).kernels() == {"triton.region": 1}
                session.run(step)
                found.append([session.run(v) for v in into])
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", [name for name in CASES if name != "dropout"])
def test_kernels_agree_with_the_cpu(host: Host, name: str, precision: str) -> None:
    found = []
    for backends in (["cpu"], BACKENDS):
        config = tf.SessionConfig(backends=backends)
        with tf.Graph(host=host).as_default() as graph, tf.Session(graph=graph, config=config, host=host) as session:
            call, kept = graphdock_kernel(tf, session, CASES[name], True, tf.as_dtype(precision))
            call()
            found.append([session.run(v).astype(np.float32) for v in kept])
    near = {"float32": 1e-4, "bfloat16": 3e-2}[precision]
    for want, got in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=near, atol=near * max(float(np.abs(want).max()), 1.0))


@pytest.mark.parametrize("persistent", ["always", "never"])
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_products_that_stay_agree_with_numpy(
    host: Host, dtype: str, turned: tuple[bool, bool], persistent: str
) -> None:
    """Edges of tiles, several tiles to a program, and what the activation is applied to."""
    m, n, k = 5000, 712, 264
    random = np.random.default_rng(4)
    shapes = ((k, m) if turned[0] else (m, k), (n, k) if turned[1] else (k, n), (n,))
    a, b, bias = (tf.as_dtype(dtype).as_numpy_dtype(random.standard_normal(s).astype(np.float32)) for s in shapes)
    options = {"triton": {"persistent": persistent, "matmul_precision": "tf32"}}
    config = tf.SessionConfig(backends=BACKENDS, options=options)
    with tf.Graph(host=host).as_default():
        held = [tf.Variable(x) for x in (a, b, bias)]
        operands = dict(zip(("a", "b", "bias"), (v.read_value() for v in held), strict=True))
        turns = {"transpose_a": turned[0], "transpose_b": turned[1]}
        fetches = apply_op("FusedMatMul", **operands, **turns, activation="relu")
        with tf.Session(config=config, host=host) as session:
            session.run(tf.global_variables_initializer())
            got = [session.run(fetches) for _ in range(3)]
            kernels = session.explain(fetches).kernels()
    assert kernels.get(f"triton.{'matmul_persistent' if persistent == 'always' else 'matmul'}") == 1, kernels
    a, b, bias = (x.astype(np.float64) for x in (a, b, bias))
    want = (a.T if turned[0] else a) @ (b.T if turned[1] else b) + bias
    near = {"bfloat16": 1e-2, "float16": 2e-3, "float32": 4e-3}[dtype]
    for value, before in got:
        for found, exact in ((value, np.maximum(want, 0)), (before, want)):
            np.testing.assert_allclose(found.astype(np.float64), exact, rtol=near, atol=near * 16)


@pytest.mark.parametrize("name", sorted(programs.PROGRAMS | programs.LOOPS))
def test_training_agrees_with_the_cpu(host: Host, name: str) -> None:
    found = []
    for backends in (BACKENDS, ("cpu",)):
        random = np.random.default_rng(3)
        with tf.Graph(host=host).as_default():
            tf.set_random_seed(5)
            step = (programs.PROGRAMS | programs.LOOPS)[name]()
            with tf.Session(config=tf.SessionConfig(backends=backends), host=host) as session:
                session.run(tf.global_variables_initializer())
                found.append([session.run([step.loss, step.train], step.feed(random))[0] for _ in range(10)])
    np.testing.assert_allclose(*found, rtol=1e-3)
