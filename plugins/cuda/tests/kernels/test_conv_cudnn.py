"""Convolutions by cuDNN: what is asked of it is what the specs say, and what is not asked says why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import graphdock as tf
import ml_dtypes
import numpy as np
import pytest
from graphdock import ops
from graphdock.plugin.host import Host
from graphdock_cuda.kernels import conv_cudnn
from graphdock_cuda.testing import FakeCudnn, toolkit
from graphdock_cuda.testing.install import install
from graphdock_testing.conformance import Conformance, Refused

pytestmark = pytest.mark.slow


class Site:
    """An emulated GPU with cuDNN. Attributes: ``host``, ``driver``, ``library``: the FakeCudnn; ``device``."""

    def __init__(self, **options: Any) -> None:
        self.tools, self.host = toolkit(cudnn=True, **options), Host()
        self.driver: Any = self.tools.driver
        self.device = install(self.host, self.tools)
        assert self.tools.dnn is not None
        self.library: FakeCudnn = self.tools.dnn()._library  # type: ignore[attr-defined]

    def run(self, make: Callable[..., Any], *arrays: np.ndarray, steps: int = 1, **options: str) -> Any:
        """What ``make(*placeholders)`` gives in the last of some steps."""
        backends = ("cuda", "cpu") if options else ("cpu",)
        config = tf.SessionConfig(backends=backends, fallback="forbid", options={"cuda": options} if options else {})
        with tf.Graph(host=self.host).as_default():
            feeds = [tf.placeholder(a.dtype, a.shape) for a in arrays]
            fetches = make(*feeds)
            with tf.Session(config=config, host=self.host) as session:
                for _ in range(steps):
                    found = session.run(fetches, dict(zip(feeds, arrays, strict=True)))
        return found

    def lost(self, make: Callable[[], Any], **config: Any) -> dict[str, str]:
        """Op -> why its kernel by cuDNN is not taken; "" where it is."""
        found = {}
        with tf.Graph(host=self.host).as_default():
            made = make()
            with tf.Session(config=tf.SessionConfig(backends=("cuda", "cpu"), **config), host=self.host) as session:
                for row in session.explain(made).rows:
                    if row.op.startswith("Conv"):
                        found[row.op] = next((why for name, why in row.lost if name.endswith("_cudnn")), "")
                        assert row.kernel.endswith("_cudnn") == (not found[row.op])
        return found


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    made = Site(seed=3)
    yield made
    made.driver.verify()


def _of(convolution: Callable[..., Any]) -> Callable[..., Any]:
    """The convolution and both of its gradients."""

    def made(x: Any, w: Any) -> Any:
        y = convolution(x, w)
        return [y, *tf.gradients(y * y, [x, w])]

    return made


def _normal(seed: int, *shapes: Any, dtype: Any = np.float32) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(dtype) for s in shapes]


@pytest.mark.parametrize("op", sorted(k.op for k in conv_cudnn.KERNELS))
@pytest.mark.sampled(8)
def test_conformance(site: Site, op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every dtype and sample that it takes, in plans of known shapes."""
    monkeypatch.setattr(conv_cudnn, "LEAST", 0)
    kit = Conformance("cuda", host=site.host, oracle="reference")
    count = 0
    for case in kit.cases(op, kernels=[next(k.short_name for k in conv_cudnn.KERNELS if k.op == op)]):
        try:
            kit.check(case, brief=True)
            count += 1
        except Refused as refused:
            known = ("no elements", "product of matrices", "its shapes are known in the step alone")
            assert any(reason in str(refused) for reason in known), case.id
    assert count >= 3


@pytest.mark.parametrize(
    ("x", "w", "attrs"),
    [
        ((2, 19, 17, 5), (3, 3, 5, 37), {"strides": [1, 2, 2, 1], "padding": "SAME"}),
        ((3, 9, 20, 4), (2, 5, 4, 3), {"strides": [1, 1, 3, 1], "padding": "VALID", "dilations": [1, 3, 2, 1]}),
        ((2, 6, 20, 11), (3, 3, 6, 40), {"strides": [1, 1, 1, 2], "padding": "SAME", "data_format": "NCHW"}),
        ((2, 8, 9, 3), (2, 4, 3, 7), {"strides": [1, 2, 1, 1], "padding": [[0, 0], [0, 3], [2, 1], [0, 0]]}),
        ((8, 3, 4, 4), (1, 1, 3, 7), {"strides": [1, 1, 1, 1], "padding": "VALID", "data_format": "NCHW"}),
    ],
)
def test_images(site: Site, x: Any, w: Any, attrs: dict[str, Any]) -> None:
    """As it is, recorded and replayed."""
    arrays = _normal(1, x, w)
    make = _of(lambda a, b: tf.nn.conv2d(a, b, **attrs))
    site.driver.log.reset()
    got = site.run(make, *arrays, steps=3, cudnn="always")
    assert [site.driver.log.kernels[name] for name in ("conv_fprop", "conv_dgrad", "conv_wgrad")] == [3, 3, 3]
    for mine, theirs in zip(got, site.run(make, *arrays), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("first", [False, True])
def test_bias_and_activation_follow(site: Site, first: bool) -> None:
    """In one launch behind, or one each where a gradient reads what is activated."""
    layout = "NCHW" if first else "NHWC"
    x, w, bias = _normal(2, (2, 5, 9, 8) if first else (2, 9, 8, 5), (3, 2, 5, 6), (6,))
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME", "data_format": layout}

    def fused(a: Any, b: Any, c: Any) -> Any:
        return list(ops.apply_op("FusedConv2D", input=a, filter=b, bias=c, activation="gelu", **attrs))

    def alone(a: Any, b: Any, c: Any) -> Any:
        return fused(a, b, c)[:1]

    for make in (fused, alone):
        site.driver.log.reset()
        got = site.run(make, x, w, bias, cudnn="always")
        assert site.driver.log.kernels["conv_fprop"] == 1
        for mine, theirs in zip(got, site.run(make, x, w, bias), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-5)


def test_tf32_only_where_the_session_allows_it(site: Site) -> None:
    """The fake rounds as tensor cores do, where it may take them."""
    x, w = np.full((1, 4, 4, 1), 1 + 2.0**-12, np.float32), np.ones((2, 2, 1, 1), np.float32)

    def first(**options: str) -> float:
        return float(
            site.run(lambda a, b: tf.nn.conv2d(a, b, [1, 1, 1, 1], "VALID"), x, w, cudnn="always", **options).flat[0]
        )

    assert first() == first(matmul_precision="highest") == 4 + 2.0**-10
    assert [first(matmul_precision=p) for p in ("tf32", "bf16", "fp16")] == [4.0, 4.0, 4.0]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_operands_that_are_not_aligned(site: Site, dtype: Any) -> None:
    """Views that begin in the middle of an array: of both operands, in recorded steps and in others."""
    x, w = _normal(2, (3, 5, 5, 3), (2, 3, 3, 3, 2), dtype=dtype)

    def make(a: Any, b: Any) -> Any:
        return tf.nn.conv2d(a[1:], b[1], [1, 1, 1, 1], "SAME")

    got = site.run(make, x, w, steps=3, cudnn="always")
    np.testing.assert_allclose(got.astype(np.float32), site.run(make, x, w).astype(np.float32), rtol=4e-2, atol=4e-2)


def _image(*shape: Any, size: int = 3, dtype: Any = tf.float32, **attrs: Any) -> Callable[[], Any]:
    def make() -> Any:
        x = tf.placeholder(dtype, shape)
        w = tf.cast(tf.ones([size, size, shape[1 if "data_format" in attrs else 3], 8]), dtype)
        return tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME", **attrs)

    return make


LARGE = (4, 24, 24, 8)


@pytest.mark.parametrize(
    ("make", "options", "why"),
    [
        (_image(*LARGE), {}, ""),
        (_image(*LARGE, dtype=tf.bfloat16), {}, ""),
        (_image(*LARGE, data_format="NCHW"), {}, ""),
        (_image(*LARGE, size=1, data_format="NCHW"), {"cudnn": "always"}, ""),
        (_image(1, 4, 4, 3), {}, "it has 3456 products of elements, and cuDNN is asked from 131072 on"),
        (_image(1, 4, 4, 3), {"cudnn": "always"}, ""),
        (_image(*LARGE), {"cudnn": "never"}, "the option cudnn is 'never'"),
        (_image(*LARGE, size=1), {"cudnn": "always"}, "a window of one element is a product of matrices"),
        (_image(0, 24, 24, 8), {"cudnn": "always"}, "there are no elements"),
        (_image(None, 24, 24, 8), {"cudnn": "always"}, "its shapes are known in the step alone"),
        (_image(*LARGE, dtype=tf.float64), {}, "float64"),
    ],
)
def test_which_convolutions_are_its_own(site: Site, make: Any, options: dict[str, str], why: str) -> None:
    (found,) = site.lost(make, options={"cuda": options}).values()
    assert why in found if why else not found


def test_what_the_library_refuses_is_left_to_the_own_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site()
    site.library.refuses = {"conv_dgrad"}
    x, w = _normal(3, (2, 9, 9, 3), (3, 3, 3, 5))
    make = _of(lambda a, b: tf.nn.conv2d(a, b, [1, 1, 1, 1], "SAME"))
    found = site.lost(lambda: make(tf.constant(x), tf.Variable(w).read_value()), options={"cuda": {"cudnn": "always"}})
    reason = "cuDNN can't do it: no valid engine configs returned from heuristics"
    assert found["Conv2DBackpropInput"].endswith(reason) and not found["Conv2DBackpropFilter"]
    got = site.run(make, x, w, cudnn="always")
    for mine, theirs in zip(got, site.run(make, x, w), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=2e-4)
    site.driver.verify()


def test_without_cudnn_the_reason_is_that(kit: Conformance) -> None:
    with tf.Graph(host=kit.host).as_default():
        y = _image(*LARGE)()
        with tf.Session(config=tf.SessionConfig(backends=("cuda", "cpu")), host=kit.host) as session:
            row = next(r for r in session.explain(y).rows if r.op == "Conv2D")
    assert row.kernel == "cuda.conv2d"
    assert dict(row.lost)["cuda.conv2d_cudnn"].endswith("there is no cuDNN")


@pytest.mark.parametrize("call", ["cudnn_create_handle", "cudnn_build", "convolution", "late"])
def test_a_call_that_fails_is_told(call: str) -> None:
    """While a plan is made it is a reason for the own kernel; in a step an error, after which the session goes on."""
    site = Site(seed=4)
    x, w = _normal(5, (2, 6, 6, 3), (3, 3, 3, 4))
    want = site.run(lambda a: tf.nn.conv2d(a, w, [1, 1, 1, 1], "SAME"), x)
    with tf.Graph(host=site.host).as_default():
        feed = tf.placeholder(tf.float32, x.shape)
        y = tf.nn.conv2d(feed, w, [1, 1, 1, 1], "SAME")
        config = tf.SessionConfig(backends=("cuda", "cpu"), options={"cuda": {"cudnn": "always"}})
        with tf.Session(config=config, host=site.host) as session:
            faults = site.driver.faults
            faults.reset()
            faults.at(
                1, 719 if call == "late" else 2, call="convolution" if call == "late" else call, late=call == "late"
            )
            if call == "late":
                with pytest.raises(tf.errors.DeviceLostError):
                    session.run(y, {feed: x})
                return
            if call == "convolution":
                with pytest.raises(tf.errors.GraphdockError, match="convolution failed with code"):
                    session.run(y, {feed: x})
            np.testing.assert_allclose(session.run(y, {feed: x}), want, rtol=1e-5, atol=1e-5)
            (row,) = (r for r in session.explain(y, {feed: x}).rows if r.op == "Conv2D")
            why = dict(row.lost).get("cuda.conv2d_cudnn", "")
            assert call == "convolution" or f"cuDNN can't do it: {call} failed" in why
            assert len(faults.happened) == 1
    site.driver.verify()
