"""Products and convolutions with what follows them: which products and launches are traced, and that all compute the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.plugin.host import Host
from graphdock_cuda.driver.api import Toolkit
from graphdock_cuda.kernels import fused
from graphdock_cuda.testing import blas
from graphdock_cuda.testing.blas import EPILOGUES
from graphdock_cuda.testing.install import install
from graphdock_cuda.work import Work
from graphdock_std.reference.conv import conv

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}


WINDOW: dict[str, Any] = {"strides": (1, 1, 1, 1), "padding": "SAME", "dilations": (1, 1, 1, 1), "data_format": "NHWC"}


def _traced(kit: Any, shapes: Any, unused: tuple[int, ...], trace: Any = fused.fused_matmul, **attrs: Any) -> list[str]:
    """Of a trace: epilogues of products, entries of launches, copies."""

    attrs = {"activation": "none"} | attrs
    return _traced_of(trace, "a b bias", "y before", kit, shapes, unused, **attrs)


def _traced_of(
    trace: Callable[[Work], None],
    given: str,
    made: str,
    kit: Any,
    shapes: Any,
    unused: tuple[int, ...] = (),
    **attrs: Any,
) -> list[str]:
    class Node:
        op, origin, site = "FusedMatMul", None, None

    Node.attrs = {"transpose_a": False, "transpose_b": False, **WINDOW} | attrs  # type: ignore[attr-defined]
    inputs = [(name, tf.float32, s) for name, s in zip(given.split(), shapes, strict=True)]
    outputs = [(name, tf.float32, None) for name in made.split()]
    device = kit.host.open_device("/device:cuda:0")
    w = Work(Node(), device, inputs, outputs, {}, {}, unused)  # type: ignore[arg-type]
    trace(w)
    written = {x.index for s in w.steps for x in s.args if getattr(x, "kind", "") == "output"}
    assert written == set(range(len(outputs))) - set(unused) or not w.steps
    return [s.what.gemm.epilogue if s.kind == "gemm" else s.entry.partition("_")[0] or s.kind for s in w.steps]


@pytest.mark.parametrize(
    ("activation", "one", "both"),
    [
        ("none", ["bias"], ["bias", "copy"]),
        ("relu", ["relu_bias"], ["bias", "flat"]),
        ("tanh", ["bias", "flat"], ["bias", "flat"]),
        ("sigmoid", ["bias", "flat"], ["bias", "flat"]),
        ("gelu", ["bias", "flat"], ["bias", "flat"]),
        ("gelu_tanh", ["gelu_bias"], ["gelu_aux_bias"]),
    ],
)
def test_what_is_traced(kit: Any, activation: str, one: list[str], both: list[str]) -> None:
    shapes = ((5, 7), (7, 16), (16,))
    assert _traced(kit, shapes, (1,), activation=activation) == one
    assert _traced(kit, shapes, (), activation=activation) == both
    assert _traced(kit, shapes, (0,), activation=activation) == ["bias"]


def test_rows_that_no_second_result_fits(kit: Any) -> None:
    """The library writes it with a leading dim of eights."""
    assert _traced(kit, ((5, 7), (7, 12), (12,)), (), activation="gelu_tanh") == ["bias", "flat"]
    assert _traced(kit, ((5, 7), (7, 12), (12,)), (1,), activation="gelu_tanh") == ["gelu_bias"]
    assert _traced(kit, ((5, 0), (0, 16), (16,)), (), activation="gelu_tanh") == ["matmul", "flat"]
    assert _traced(kit, ((0, 5), (5, 16), (16,)), (1,), activation="relu") == []


def test_an_epilogue_that_the_library_has_not(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The product stays the library's."""
    monkeypatch.delitem(EPILOGUES, "gelu")
    shapes = ((5, 9), (9, 24), (24,))
    assert _traced(kit, shapes, (1,), activation="gelu_tanh") == ["bias", "flat"]
    assert _traced(kit, shapes, (), activation="gelu_tanh") == ["bias", "flat"]
    monkeypatch.delitem(EPILOGUES, "bias")
    monkeypatch.delitem(EPILOGUES, "relu")
    assert _traced(kit, ((5, 9), (9, 23), (23,)), (1,), activation="relu") == ["matmul"]


@pytest.mark.parametrize("library", [True, False])
@pytest.mark.parametrize("activation", [a for a in ACTIVATIONS if a != "relu6"])
def test_sizes(cuda: Toolkit, library: bool, activation: str) -> None:
    """Transposed both, beyond a tile, with the matrix library and without it; each output alone, and both."""
    host = Host()
    install(host, cuda if library else replace(cuda, blas=None))
    rng = np.random.default_rng(5)
    a, b, bias = (rng.standard_normal(s).astype(np.float32) for s in ((70, 33), (40, 70), (40,)))
    before = a.T.astype(np.float64) @ b.T + bias
    wanted = [ACTIVATIONS[activation](before), before]
    with tf.Graph(host=host).as_default():
        feeds = [tf.placeholder(tf.float32, x.shape) for x in (a, b, bias)]
        attrs = {"activation": activation, "transpose_a": True, "transpose_b": True}
        made = ops.apply_op("FusedMatMul", **dict(zip(("a", "b", "bias"), feeds, strict=True)), **attrs)
        config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid")
        with tf.Session(config=config, host=host) as session:
            for which in ([0], [1], [0, 1]):
                got = session.run([made[i] for i in which], dict(zip(feeds, (a, b, bias), strict=True)))
                for x, i in zip(got, which, strict=True):
                    np.testing.assert_allclose(x, wanted[i], rtol=2e-4, atol=2e-4)


def test_gradients_end_in_epilogues(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a bias with that of its weights; through gelu with the product that reaches it, where rows are of eights."""

    def sums(*unused: int, rows: int = 6, **attrs: Any) -> list[str]:
        shapes = ((rows, 7), (rows, 16))
        attrs = {"transpose_a": True, "summed": "b"} | attrs
        return _traced_of(fused.matmul_with_sums, "a b", "y sums", kit, shapes, unused, **attrs)

    def slope(columns: int) -> list[str]:
        shapes = ((5, 7), (columns, 7), (5, columns))
        return _traced_of(fused.matmul_gelu_grad, "a b x", "y", kit, shapes, transpose_b=True)

    assert (sums(), sums(summed="a"), slope(16)) == (["sums_b"], ["sums_a"], ["dgelu"])
    assert (sums(1), sums(0), slope(12)) == (["none"], ["by"], ["none", "flat"])
    assert sums(rows=0) == ["matmul", "by"]  # zeros
    for epilogue in ("dgelu", "sums_b"):
        monkeypatch.setattr(blas, "GRADIENTS", blas.GRADIENTS - {epilogue})
    assert (sums(rows=9), slope(24)) == (["none", "by"], ["none", "flat"])  # plans are kept by their products


@pytest.mark.parametrize("library", [True, False])
def test_gradients_of_many_rows(cuda: Toolkit, library: bool) -> None:
    """Beyond a tile, sums in two stages; with the matrix library and without it."""
    host = Host()
    install(host, cuda if library else replace(cuda, blas=None))
    rng = np.random.default_rng(6)
    a, g, w, x = (rng.standard_normal(s).astype(np.float32) for s in ((1300, 33), (1300, 40), (24, 40), (1300, 24)))
    wide = x.astype(np.float64)
    slope = (ACTIVATIONS["gelu_tanh"](wide + 1e-6) - ACTIVATIONS["gelu_tanh"](wide - 1e-6)) / 2e-6
    wanted = [a.T.astype(np.float64) @ g, g.sum(0, np.float64), (g.astype(np.float64) @ w.T) * slope]
    with tf.Graph(host=host).as_default():
        feeds = [tf.placeholder(tf.float32, v.shape) for v in (a, g, w, x)]
        made = ops.apply_op("MatMulWithSums", a=feeds[0], b=feeds[1], transpose_a=True)
        through = ops.apply_op("MatMulGeluGrad", a=feeds[1], b=feeds[2], x=feeds[3], transpose_b=True)
        config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid")
        with tf.Session(config=config, host=host) as session:
            got = session.run([*made, through], dict(zip(feeds, (a, g, w, x), strict=True)))
    for mine, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=2e-3)


@pytest.mark.parametrize("activation", ["none", "relu", "relu6", "tanh", "sigmoid", "gelu", "gelu_tanh"])
def test_what_is_told_of_a_convolution(kit: Any, activation: str) -> None:
    """One launch, and a second where what is activated is wanted too; a window of one element is a product."""
    shapes = ((2, 5, 4, 3), (3, 2, 3, 8), (8,))
    after = "copy" if activation == "none" else "flat"
    assert _traced(kit, shapes, (1,), fused.fused_conv2d, activation=activation) == ["conv"]
    assert _traced(kit, shapes, (), fused.fused_conv2d, activation=activation) == ["conv", after]
    assert _traced(kit, shapes, (0,), fused.fused_conv2d, activation=activation) == ["conv"]
    point = ((2, 5, 4, 3), (1, 1, 3, 8), (8,))
    epilogue = {"none": ["bias"], "relu": ["relu_bias"], "gelu_tanh": ["gelu_bias"]}.get(activation, ["bias", "flat"])
    assert _traced(kit, point, (1,), fused.fused_conv2d, activation=activation) == epilogue
    turned = ((2, 3, 5, 4), (1, 1, 3, 8), (8,))
    assert _traced(kit, turned, (1,), fused.fused_conv2d, activation=activation, data_format="NCHW") == ["conv"]


@pytest.mark.parametrize(("activation", "channels"), [("relu6", 3), ("sigmoid", 300)])
def test_convolutions(cuda: Toolkit, activation: str, channels: int) -> None:
    """Both layouts, and with a long sum, which is cut into parts: each output alone, and both."""
    host = Host()
    install(host, cuda)
    rng = np.random.default_rng(6)
    x, w = rng.standard_normal((2, 5, 4, channels)), rng.standard_normal((3, 2, channels, 6)) / channels**0.5
    bias = rng.standard_normal(6)
    attrs = {**WINDOW, "strides": (1, 2, 1, 1), "explicit_paddings": ()}
    before = conv(x, w, **attrs) + bias
    wanted = [ACTIVATIONS[activation](2 * before), 2 * before]
    for first in (False, True):
        turn = (0, 3, 1, 2) if first else (0, 1, 2, 3)
        layout = {"strides": (1, 1, 2, 1), "data_format": "NCHW"} if first else {}
        given = [a.astype(np.float32) for a in (x.transpose(turn), 2 * w, 2 * bias)]
        with tf.Graph(host=host).as_default():
            feeds = [tf.placeholder(tf.float32, a.shape) for a in given]
            named = dict(zip(("input", "filter", "bias"), feeds, strict=True))
            made = ops.apply_op("FusedConv2D", **named, **(attrs | layout), activation=activation)
            config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid")
            with tf.Session(config=config, host=host) as session:
                for which in ([0], [1], [0, 1]):
                    got = session.run([made[i] for i in which], dict(zip(feeds, given, strict=True)))
                    for result, i in zip(got, which, strict=True):
                        np.testing.assert_allclose(result, wanted[i].transpose(turn), rtol=2e-4, atol=2e-4)
