"""Products with what follows them: which products and launches are told, and that all of them compute the same."""

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
from graphdock_cuda.testing.blas import EPILOGUES
from graphdock_cuda.testing.install import install
from graphdock_cuda.work import Work

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}


def _told(kit: Any, shapes: Any, unused: tuple[int, ...], **attrs: Any) -> list[str]:
    """What the kernel tells: epilogues of products, entries of launches, copies."""

    class Node:
        op, origin, site = "FusedMatMul", None, None

    Node.attrs = {"transpose_a": False, "transpose_b": False, "activation": "none"} | attrs  # type: ignore[attr-defined]
    inputs = [(name, tf.float32, s) for name, s in zip(("a", "b", "bias"), shapes, strict=True)]
    outputs = [("y", tf.float32, None), ("before", tf.float32, None)]
    device = kit.host.open_device("/device:cuda:0")
    w = Work(Node(), device, inputs, outputs, {}, {}, unused)  # type: ignore[arg-type]
    fused.fused_matmul(w)
    written = {x.index for s in w.steps for x in s.args if getattr(x, "kind", "") == "output"}
    assert written == {0, 1} - set(unused) or not w.steps
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
def test_what_is_told(kit: Any, activation: str, one: list[str], both: list[str]) -> None:
    shapes = ((5, 7), (7, 16), (16,))
    assert _told(kit, shapes, (1,), activation=activation) == one
    assert _told(kit, shapes, (), activation=activation) == both
    assert _told(kit, shapes, (0,), activation=activation) == ["bias"]


def test_rows_that_no_second_result_fits(kit: Any) -> None:
    """The library writes it with a leading dim of eights."""
    assert _told(kit, ((5, 7), (7, 12), (12,)), (), activation="gelu_tanh") == ["bias", "flat"]
    assert _told(kit, ((5, 7), (7, 12), (12,)), (1,), activation="gelu_tanh") == ["gelu_bias"]
    assert _told(kit, ((5, 0), (0, 16), (16,)), (), activation="gelu_tanh") == ["matmul", "flat"]
    assert _told(kit, ((0, 5), (5, 16), (16,)), (1,), activation="relu") == []


def test_an_epilogue_that_the_library_has_not(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The product stays the library's."""
    monkeypatch.delitem(EPILOGUES, "gelu")
    shapes = ((5, 9), (9, 24), (24,))
    assert _told(kit, shapes, (1,), activation="gelu_tanh") == ["bias", "flat"]
    assert _told(kit, shapes, (), activation="gelu_tanh") == ["bias", "flat"]
    monkeypatch.delitem(EPILOGUES, "bias")
    monkeypatch.delitem(EPILOGUES, "relu")
    assert _told(kit, ((5, 9), (9, 23), (23,)), (1,), activation="relu") == ["matmul"]


@pytest.mark.parametrize("library", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
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
