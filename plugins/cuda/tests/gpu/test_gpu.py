"""On a real GPU: conformance, training steps, loops, conditions, examples, many threads. Skipped without one. ``pytest -m gpu``."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.ops import apply_op
from graphdock.plugin.host import Host
from graphdock_cuda.testing import kernels
from graphdock_testing.conformance import Conformance, Refused
from graphdock_testing.covering import covering

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

_path = Path(__file__).parents[1] / "steps" / "programs.py"
_spec = importlib.util.spec_from_file_location("cuda_gpu_programs", _path)
assert _spec is not None and _spec.loader is not None
programs: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)


@pytest.fixture(scope="module")
def kit(host: Host) -> Conformance:
    made = Conformance("cuda", host=host, oracle="cpu")
    with made.watching.case():
        pass  # queues are watched from the first one on, whichever test makes it
    return made


@pytest.mark.parametrize("op", ["device cuda", *sorted({k.op for k in kernels()})])
def test_conformance(kit: Conformance, op: str) -> None:
    for case in covering(c for c in kit.cases(op) if c.kind != "gradient"):
        try:
            kit.check(case)
        except Refused:  # by cuDNN's kernels: samples are small
            continue


def _losses(host: Host, make: Callable[[], Any], backends: tuple[str, ...], steps: int = 20) -> np.ndarray:
    random = np.random.default_rng(3)
    with tf.Graph(host=host).as_default():
        tf.set_random_seed(5)
        step = make()
        with tf.Session(config=tf.SessionConfig(backends=backends), host=host) as session:
            session.run(tf.global_variables_initializer())
            return np.array([session.run([step.loss, step.train], step.feed(random))[0] for _ in range(steps)])


@pytest.mark.parametrize("name", sorted(programs.PROGRAMS | programs.LOOPS))
def test_training_agrees_with_the_cpu(host: Host, name: str) -> None:
    make = (programs.PROGRAMS | programs.LOOPS)[name]
    np.testing.assert_allclose(_losses(host, make, ("cuda", "cpu")), _losses(host, make, ("cpu",)), rtol=1e-3)


#: x, w, and attributes of a convolution.
CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((4, 28, 28, 16), (3, 3, 16, 32), {"strides": [1, 1, 1, 1], "padding": "SAME"}),
    ((2, 57, 60, 3), (7, 7, 3, 24), {"strides": [1, 2, 2, 1], "padding": "SAME"}),
    ((2, 20, 19, 5), (3, 3, 5, 7), {"strides": [1, 1, 1, 1], "padding": "VALID", "dilations": [1, 2, 2, 1]}),
    ((2, 8, 24, 24), (3, 3, 8, 16), {"strides": [1, 1, 2, 2], "padding": "SAME", "data_format": "NCHW"}),
]


@pytest.mark.parametrize("precision", ["highest", "tf32", "bfloat16"])
@pytest.mark.parametrize("sizes", CONVOLUTIONS)
def test_convolutions_by_cudnn_agree_with_the_cpu(host: Host, sizes: Any, precision: str) -> None:
    """With both gradients, as they are, recorded, and replayed, the same bits each time."""
    x, w, attrs = sizes
    rng = np.random.default_rng(1)
    xv, wv = (rng.standard_normal(s).astype(np.float32) for s in (x, w))
    dtype = tf.bfloat16 if precision == "bfloat16" else tf.float32
    options = {"cudnn": "always", "matmul_precision": "tf32" if precision == "tf32" else "highest"}
    found: dict[str, Any] = {}
    for backends in (("cuda", "cpu"), ("cpu",)):
        config = tf.SessionConfig(backends=backends, options={"cuda": options} if backends[0] == "cuda" else {})
        with tf.Graph(host=host).as_default():
            a, b = tf.placeholder(tf.float32, x), tf.placeholder(tf.float32, w)
            y = tf.nn.conv2d(tf.cast(a, dtype), tf.cast(b, dtype), **attrs)
            made = [tf.cast(t, tf.float32) for t in (y, *tf.gradients(y, [a, b]))]
            with tf.Session(config=config, host=host) as session:
                rows = [r for r in session.explain(made).rows if r.op.startswith("Conv2D")]
                lost = {why for r in rows for name, why in r.lost if name.endswith("_cudnn")}
                if any("loaded" in why for why in lost):
                    pytest.skip("; ".join(lost))
                assert not lost or backends == ("cpu",), lost
                runs = [session.run(made, {a: xv, b: wv}) for _ in range(3)]
        for other in runs[1:]:
            for first, again in zip(runs[0], other, strict=True):
                np.testing.assert_array_equal(first, again)
        found[backends[0]] = runs[-1]
    near = {"highest": 1e-5, "tf32": 2e-3, "bfloat16": 2e-2}[precision]
    for mine, theirs in zip(found["cuda"], found["cpu"], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=near, atol=near * float(np.abs(theirs).max()))


@pytest.mark.parametrize("precision", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("workspace", [1 << 25, 1 << 20, 1 << 17])
def test_attention_in_chunks_agrees_with_the_cpu(
    host: Host, monkeypatch: pytest.MonkeyPatch, workspace: int, precision: str
) -> None:
    """All matrices at once, some, and some queries of one; with dropout, both ways, recorded and replayed."""
    monkeypatch.setattr(host.open_device("/device:cuda:0"), "workspace", workspace)
    rng = np.random.default_rng(2)
    values = [rng.standard_normal((2, 3, 256, 64)).astype(np.float32) for _ in range(3)]
    stream = np.array([7, 11, 5, 3, 2], np.uint64)
    found: dict[str, Any] = {}
    for backends in (("cuda", "cpu"), ("cpu",)):
        with tf.Graph(host=host).as_default():
            feeds = [tf.placeholder(tf.float32, x.shape) for x in values]
            q, k, v = (tf.cast(x, precision) for x in feeds)
            drop = {
                "stream": tf.constant(stream),
                "rate": tf.constant(0.2),
                "factor": tf.cast(tf.constant(1.25), precision),
            }
            y = apply_op("DroppedAttention", query=q, key=k, value=v, **drop, scale=0.125, causal=True)[0]
            made = [tf.cast(t, tf.float32) for t in (y, *tf.gradients(y, feeds))]
            with tf.Session(config=tf.SessionConfig(backends=backends), host=host) as session:
                runs = [session.run(made, dict(zip(feeds, values, strict=True))) for _ in range(3)]
        for other in runs[1:]:
            for first, again in zip(runs[0], other, strict=True):
                np.testing.assert_array_equal(first, again)
        found[backends[0]] = runs[-1]
    near = {"float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}[precision]
    for mine, theirs in zip(found["cuda"], found["cpu"], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=near, atol=near * float(np.abs(theirs).max()))


#: Example -> options for a few steps of it.
EXAMPLES = {
    "mlp": "--steps 12 --hidden 32",
    "digits_cnn": "--steps 12 --batch 32 --width 16 --seed 1",
    "transformer": "--steps 12 --batch 8 --length 8 --width 16 --heads 2 --vocabulary 8",
    "lstm_lm": "--steps 12 --layers 1 --units 32 --text 8000 --words 10 --length 8",
}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_trains_as_on_the_cpu(host: Host, name: str) -> None:
    program = importlib.import_module(f"examples.{name}")
    found = [program.main(["--backend", backends, *EXAMPLES[name].split()]).losses for backends in ("cuda,cpu", "cpu")]
    np.testing.assert_allclose(*found, rtol=1e-2)


def test_what_the_gpu_decides_itself(host: Host) -> None:
    """A loop in a branch, and a branch, in one training step. Its driver must have conditional nodes, and link what sets them."""
    device: Any = host.open_device("/device:cuda:0")
    if device.driver.conditions():
        pytest.skip(device.driver.conditions())
    assert device.undecided == ""
    make = programs.decided_by_the_gpu
    found = []
    for backends in (("cuda", "cpu"), ("cpu",)):
        with tf.Graph(host=host).as_default():
            step = make()
            with tf.Session(config=tf.SessionConfig(backends=backends), host=host) as session:
                session.run(tf.global_variables_initializer())
                random = np.random.default_rng(7)
                feeds = [step.feed(random) for _ in range(20)]
                found.append([session.run([step.train, step.loss], feed)[1] for feed in feeds])
                told = str(session.explain([step.train, step.loss]))
                assert backends == ("cpu",) or told.count("decided by the device") == 4, told
    np.testing.assert_allclose(*found, rtol=1e-4)


def test_steps_of_many_threads_count_right(host: Host) -> None:
    with tf.Graph(host=host).as_default() as graph:
        x = tf.placeholder(tf.float32, [1000])
        total = tf.Variable(tf.zeros([1000]))
        add = tf.assign_add(total, x)
        with tf.Session(graph=graph, config=tf.SessionConfig(backends=("cuda", "cpu")), host=host) as session:
            session.run(tf.global_variables_initializer())

            def work() -> None:
                for _ in range(200):
                    session.run(add.op, {x: np.ones(1000, np.float32)})

            threads = [threading.Thread(target=work) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert (session.run(total) == 1600).all()
