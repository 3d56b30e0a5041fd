"""What a session says when its GPU is missing, full, shared with others, lost, or lacks what an op needs."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_cuda.driver.api import Unsupported
from graphdock_cuda.factory import CudaFactory
from graphdock_cuda.testing import toolkit
from graphdock_cuda.testing.install import install

MIB = 1 << 20


def _host(tools: Any) -> Host:
    """A host whose GPUs are ``tools``', none of them open yet."""
    host = Host()
    host.backend("cuda")
    factory = host.devices.get("cuda")
    assert isinstance(factory, CudaFactory)
    factory.use(tools)
    return host


def _sum(host: Host, *backends: str, fallback: str = "warn") -> float:
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [3])
        config = tf.SessionConfig(backends=backends, fallback=fallback)
        with tf.Session(config=config, host=host) as session:
            return float(session.run(tf.reduce_sum(tf.tanh(x)), {x: [0.0, 0.0, 0.0]}))


def test_without_a_gpu_the_next_backend_runs_it_and_alone_it_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    assert _sum(_host(toolkit(gpus=0)), "cuda", "cpu") == 0.0
    assert "no device cuda here" in caplog.text and "sees no GPU" in caplog.text
    for backends, fallback in ((("cuda",), "warn"), (("cuda", "cpu"), "forbid")):
        with pytest.raises(tf.errors.UnavailableError, match="sees no GPU"):
            _sum(_host(toolkit(gpus=0)), *backends, fallback=fallback)


@pytest.mark.parametrize(("status", "reason"), [(46, "held by another process"), (2, "no memory left to open it")])
def test_a_gpu_that_another_process_holds(status: int, reason: str) -> None:
    """Alone (its compute mode), or with all of its memory."""
    tools = toolkit()
    driver: Any = tools.driver
    host = _host(tools)
    host.device_infos("cuda")
    driver.faults.reset()
    driver.faults.at(1, status, "stream")
    with pytest.raises(tf.errors.GraphdockError, match=reason):
        _sum(host, "cuda")
    assert _sum(host, "cuda") == 0.0  # once the other has gone


def test_a_step_that_finds_the_memory_taken_by_another_process_says_what_is_free_and_the_session_goes_on() -> None:
    tools, host = toolkit(memory=48 * MIB, seed=1), Host()
    driver: Any = tools.driver
    install(host, tools)
    elsewhere = driver.malloc(40 * MIB, 0)  # as far as this process knows, nobody's
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [None, 1024])
        y = tf.reduce_sum(tf.tanh(x, name="wide") * x)
        config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid")
        with tf.Session(config=config, host=host) as session:
            few, many = np.zeros((2, 1024)), np.zeros((2048, 1024))
            assert session.run(y, {x: few}) == 0
            with pytest.raises(tf.errors.ResourceExhaustedError, match="of the GPU's") as found:
                session.run(y, {x: many})
            notes = "\n".join(found.value.__notes__)
            assert "at their peak; the largest:" in notes and "wide" in notes
            driver.free(elsewhere, 0)
            assert session.run(y, {x: few}) == 0


def test_a_device_that_is_lost_in_a_step_fails_what_comes_later_and_leaves_other_devices_alone() -> None:
    tools, host = toolkit(gpus=2, seed=1), Host()
    driver: Any = tools.driver
    install(host, tools)
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [4])
        with tf.device("/device:cuda:0"):
            lost = tf.tanh(x, name="lost")
        with tf.device("/device:cuda:1"):
            kept = tf.square(x)
        config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid", device_count={"cuda": 2})
        with tf.Session(config=config, host=host) as session:
            session.run([lost, kept], {x: np.ones(4)})
            driver.lose(0, 700)
            for _ in range(2):
                with pytest.raises(tf.errors.DeviceLostError, match="cuda:0") as found:
                    session.run(lost, {x: np.ones(4)})
            assert any("lost" in note for note in getattr(found.value, "__notes__", ())) or "lost" in str(found.value)
            assert session.run(kept, {x: 2 * np.ones(4)}).tolist() == [4.0] * 4


def test_a_dtype_that_the_gpu_lacks_is_named_with_the_kernels_that_do_without_it() -> None:
    host = Host()
    install(host, toolkit())
    with tf.Graph(host=host).as_default():
        joined = tf.placeholder(tf.string, [2]) + "x"
        config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid")
        session = tf.Session(config=config, host=host)
        with session, pytest.raises(tf.errors.KernelNotFoundError, match="string") as found:
            session.run(joined, {joined.op.inputs[0]: ["a", "b"]})
    assert "cuda" in str(found.value)


def _missing() -> Any:
    raise Unsupported("nvmath can't be loaded: No module named 'nvmath'")


def _products(tools: Any) -> tuple[list[np.ndarray], int, str]:
    """Products of every kind and gradients of a layer: values, how many the library was called for, what the plan says."""
    host = Host()
    install(host, tools)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 5, 7)).astype("f4"), rng.standard_normal((2, 7, 4)).astype("f4")
    rows, labels = rng.standard_normal((6, 8)).astype("f4"), rng.standard_normal((6, 8)).astype("f4")
    with tf.Graph(host=host).as_default():
        x, y, z = (
            tf.placeholder(tf.float32, a.shape),
            tf.placeholder(tf.float32, b.shape),
            tf.placeholder(tf.float32, [6, 8]),
        )
        w = tf.Variable(rng.standard_normal((8, 8)).astype("f4"))
        v, bias = tf.Variable(rng.standard_normal((8, 8)).astype("f4")), tf.Variable(np.full(8, 0.25, "f4"))
        inner = tf.matmul(z, w) + bias
        hidden = 0.5 * inner * (1.0 + tf.tanh(0.7978845608028654 * (inner + 0.044715 * inner * inner * inner)))
        loss = tf.reduce_mean(tf.square(tf.matmul(hidden, v) - labels))
        fetches = [
            tf.matmul(x[0], y[0]),
            tf.matmul(x, y),
            tf.matmul(x, x, transpose_b=True),
            tf.matmul(x, x, transpose_a=True),
            tf.matmul(tf.cast(x[0], tf.float16), tf.cast(y[0], tf.float16)),
            tf.nn.relu(tf.matmul(z, v) + bias),
            *tf.gradients(loss, [w, v, bias]),
        ]
        config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid")
        with tf.Session(config=config, host=host) as session:
            session.run(tf.global_variables_initializer())
            feed = {x: a, y: b, z: rows}
            values = [session.run(fetches, feed) for _ in range(3)][-1]  # as it is, recorded, replayed
            told = str(session.explain(fetches, feed))
    tools.driver.verify()
    return values, sum(call.name == "gemm" for call in tools.driver.log.calls), told


@pytest.mark.parametrize("blas", [None, _missing])
@pytest.mark.sampled(2)
def test_products_without_the_matrix_library_are_tiles_and_a_warning_says_so(
    blas: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Where nvmath or cuBLASLt is missing, which is known when the first product is planned."""
    expected, calls, told = _products(toolkit(seed=2))
    assert calls >= 9 and all(op in told for op in ("FusedMatMul", "MatMulWithSums", "MatMulGeluGrad"))
    assert "tiles" not in caplog.text
    found, calls, _ = _products(replace(toolkit(seed=2), blas=blas))
    assert not calls
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3 if one.dtype == np.float16 else 2e-5, atol=1e-5)
    said = [r.getMessage() for r in caplog.records if "tiles of the plugin's own" in r.getMessage()]
    assert len(said) == (blas is not None)
    assert all("nvmath can't be loaded" in line for line in said)


def _trained(tools: Any) -> weakref.ref[Any]:
    host = Host()
    device = install(host, tools)
    with tf.Graph(host=host).as_default():
        x, v = tf.placeholder(tf.float32, [4]), tf.Variable(np.zeros(4, np.float32))
        step = v.assign_add(x).op
        config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid", steps_in_flight=2)
        with tf.Session(config=config, host=host) as session:
            session.run(v.initializer)
            for _ in range(5):
                session.run(step, {x: np.ones(4)})
    return weakref.ref(device)


@pytest.mark.parametrize(("dtype", "width"), [("float64", 8), ("float32", 1), ("float16", 1), ("float32", 12)])
def test_layers_whose_epilogues_the_library_refuses_train_as_on_the_cpu(dtype: str, width: int) -> None:
    """float64, one inner element, rows of aux that are not of eights: see ``graphdock_cuda.testing.blas.REFUSED``."""
    rng, found = np.random.default_rng(3), []
    rows = rng.standard_normal((6, width))
    weights = [rng.standard_normal(s) for s in ((width, 8), (8, 1), (1, 8))]
    tools, host = toolkit(), Host()
    install(host, tools)
    for backends in (("cuda", "cpu"), ("cpu",)):
        with tf.Graph(host=host).as_default():
            x, bias = tf.placeholder(dtype, rows.shape), tf.Variable(tf.constant(0.25, dtype, [8]))
            made = [tf.Variable(w.astype(dtype)) for w in weights]
            inner = tf.matmul(x, made[0]) + bias
            hidden = 0.5 * inner * (1.0 + tf.erf(inner * 0.7071067811865476))
            out = tf.nn.relu(tf.matmul(tf.matmul(hidden, made[1]), made[2]) + bias)
            fetches = [out, *tf.gradients(out * out, [x, bias, *made])]
            config = tf.SessionConfig(backends=backends, fallback="forbid")
            with tf.Session(config=config, host=host) as session:
                session.run(tf.global_variables_initializer())
                found.append([session.run(fetches, {x: rows}) for _ in range(3)][-1])
    near = {"float64": 1e-12, "float32": 1e-4, "float16": 3e-2}[dtype]
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(np.float64(mine), np.float64(theirs), rtol=near, atol=near)
    tools.driver.verify()  # type: ignore[attr-defined]


def test_a_device_and_all_that_it_made_go_with_their_host() -> None:
    tools = toolkit(seed=1)
    driver: Any = tools.driver
    device = _trained(tools)
    gc.collect()
    assert device() is None
    driver.verify()
    assert not {"event", "graph", "executable"} & driver.live.keys()
