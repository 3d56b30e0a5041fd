"""Problems that people have, for which every kernel of the library is compiled."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from graphdock_triton.kernels import (
    attention,
    batch_norm,
    conv,
    cross_entropy,
    dropout,
    embedding,
    lstm,
    matmul,
    matmul_persistent,
    norms,
    optimizers,
    rotary,
    softmax,
)
from graphdock_triton.kernels.spec import Kernel, Problem

__all__ = ["cases"]


def cases() -> Iterator[tuple[str, Kernel, Problem]]:
    """A name that is kept, a kernel, and a problem."""
    yield from _norms()
    yield from _softmax()
    yield from _matmul()
    yield from _attention()
    yield from _optimizers()
    yield from _conv()
    yield from _others()


def _norms() -> Iterator[tuple[str, Kernel, Problem]]:
    forward = frozenset({"residual", "total", "gamma", "beta", "mean", "inverse"})
    backward = frozenset({"gamma", "mean", "dtotal", "dgamma", "dbeta"})
    for kind, width in (("bf16", 1024), ("fp32", 96), ("fp16", 4096), ("fp32", 8192), ("bf16", 16384), ("bf16", 50000)):
        dims, types = {"rows": 8192, "width": width}, {"T": kind, "U": "fp32"}
        yield f"norm {kind} {width}", norms.norm, Problem(dims, types, present=forward)
        yield f"norm_grad {kind} {width}", norms.norm_grad, Problem(dims, types, present=backward)
    rms = Problem(
        {"rows": 8192, "width": 4096}, {"T": "bf16", "U": "bf16"}, {"RMS": True}, frozenset({"gamma", "inverse"})
    )
    yield "norm rms bf16 4096", norms.norm, rms
    rms = Problem(
        {"rows": 8192, "width": 4096}, {"T": "bf16", "U": "bf16"}, {"RMS": True}, frozenset({"gamma", "dgamma"})
    )
    yield "norm_grad rms bf16 4096", norms.norm_grad, rms


def _softmax() -> Iterator[tuple[str, Kernel, Problem]]:
    for kind, width in (("bf16", 1000), ("fp32", 64), ("fp32", 16384), ("bf16", 50257)):
        dims, types = {"rows": 8192, "width": width}, {"T": kind}
        for log in (False, True):
            name = "log" if log else "plain"
            yield f"softmax {name} {kind} {width}", softmax.softmax, Problem(dims, types, {"LOG": log})
            yield f"softmax_grad {name} {kind} {width}", softmax.softmax_grad, Problem(dims, types, {"LOG": log})
        types = types | {"L": "fp32", "I": "i32"}
        given = frozenset({"dx", "dloss"})
        dense = Problem(dims, {"T": kind, "L": kind}, present=given)
        yield f"cross_entropy {kind} {width}", cross_entropy.cross_entropy, dense
        sparse = Problem(dims, types, {"SMOOTH": True, "IGNORE": True}, given | {"fault"})
        yield f"sparse_cross_entropy {kind} {width}", cross_entropy.sparse_cross_entropy, sparse


def _matmul() -> Iterator[tuple[str, Kernel, Problem]]:
    def of(
        name: str,
        kind: str,
        sizes: tuple[int, int, int],
        layout: str = "nn",
        batch: int = 1,
        present: str = "bias",
        kernel: Kernel = matmul.matmul,
        **flags: Any,
    ) -> Any:
        m, n, k = sizes
        dims = {"m": m, "n": n, "k": k, "batch": batch, "c_m": n, "c_batch": m * n, "a_batch": m * k, "b_batch": k * n}
        dims |= {"a_m": k, "a_k": 1} if layout[0] == "n" else {"a_m": 1, "a_k": m}
        dims |= {"b_k": n, "b_n": 1} if layout[1] == "n" else {"b_k": 1, "b_n": k}
        types = {"T": kind, "C": kind, "B": "fp32"}
        return (
            f"{kernel.name} {name} {kind} {m}x{n}x{k}",
            kernel,
            Problem(dims, types, flags, frozenset(present.split())),
        )

    for kind, precision in (("bf16", "ieee"), ("fp32", "tf32"), ("fp32", "ieee")):
        yield of(
            f"gelu {precision}",
            kind,
            (8192, 4096, 1024),
            present="bias pre",
            ACTIVATION="gelu_tanh",
            PRECISION=precision,
        )
    yield of("relu", "bf16", (512, 256, 128), ACTIVATION="relu")
    yield of("plain", "bf16", (8192, 4096, 1024))
    yield of("residual", "bf16", (8192, 1024, 4096), present="bias residual")
    yield of("backward", "bf16", (8192, 4096, 1024), "nt", present="gate dbias", ACTIVATION="gelu_tanh")
    yield of("weights", "bf16", (1024, 4096, 8192), "tn", present="")
    yield of("split", "bf16", (128, 256, 16384), "tn")
    yield of("batched", "fp16", (512, 512, 64), "nt", 96, "")
    yield of("odd", "fp16", (1000, 77, 333))
    yield of("few rows", "bf16", (8, 4096, 4096), ACTIVATION="silu")
    stays: Any = functools.partial(of, kernel=matmul_persistent.matmul_persistent)
    yield stays("plain", "bf16", (8192, 4096, 1024))
    yield stays("gelu", "bf16", (8192, 4096, 1024), present="bias pre", ACTIVATION="gelu_tanh")
    yield stays("residual", "bf16", (8192, 1024, 4096), present="bias residual")
    yield stays("backward", "bf16", (8192, 4096, 1024), "nt", present="gate dbias", ACTIVATION="gelu_tanh")
    yield stays("weights", "bf16", (1024, 4096, 8192), "tn", present="")
    yield stays("batched", "fp16", (512, 512, 64), "nt", 96, "")
    yield stays("odd", "fp16", (1000, 77, 336), "nt")
    yield stays("gelu", "fp32", (8192, 4096, 1024), "nt", present="bias pre", ACTIVATION="gelu_tanh", PRECISION="tf32")


def _attention() -> Iterator[tuple[str, Kernel, Problem]]:
    for kind, depth, causal, biased in (
        ("bf16", 64, True, False), ("fp16", 64, False, True), ("bf16", 128, True, False), ("fp32", 64, True, False),
        ("bf16", 256, False, False),
    ):  # fmt: skip
        dims = {"batch": 8, "heads": 16, "shared": 1, "queries": 1024, "keys": 1024, "depth": depth}
        dims |= {"bias_batch": 0, "bias_head": 0, "bias_q": 1024, "bias_k": 1}
        for name in ("q", "k", "v", "o", "do", "dq", "dk", "dv"):
            dims |= {f"{name}_row": 16 * depth, f"{name}_head": depth, f"{name}_batch": 1024 * 16 * depth}
        flags, types = {"CAUSAL": causal, "PRECISION": "tf32"}, {"T": kind, "B": "fp32"}
        given = frozenset({"bias"} if biased else ())
        yield f"attention {kind} {depth}", attention.attention, Problem(dims, types, flags, given | {"logs"})
        yield f"attention_grad {kind} {depth}", attention.attention_grad, Problem(dims, types, flags, given)
        if (kind, depth) in (("bf16", 64), ("bf16", 128), ("fp32", 64)):
            given |= {"stream", "rate", "factor"}
            yield (
                f"attention dropped {kind} {depth}",
                attention.attention,
                Problem(dims, types, flags, given | {"logs"}),
            )
            yield f"attention_grad dropped {kind} {depth}", attention.attention_grad, Problem(dims, types, flags, given)


def _optimizers() -> Iterator[tuple[str, Kernel, Problem]]:
    for rule in optimizers.SLOTS:
        for kind in ("fp32", "bf16") if rule == "adam_w" else ("fp32",):
            problem = Problem({"programs": 1000}, {}, {"RULE": rule, "TYPE": kind}, frozenset({"factor"}))
            yield f"update_all {rule} {kind}", optimizers.update_all, problem
    for kind in ("fp32", "bf16"):
        problem = Problem({"programs": 1000}, {}, {"TYPE": kind}, frozenset({"factor", "limit"}))
        yield f"global_norm {kind}", optimizers.global_norm, problem
        yield f"scale_all {kind}", optimizers.scale_all, Problem({"programs": 1000}, {}, {"TYPE": kind})


def _others() -> Iterator[tuple[str, Kernel, Problem]]:
    yield "dropout bf16", dropout.dropout, Problem({"n": 1 << 24}, {"T": "bf16"}, present=frozenset({"residual"}))
    yield "dropout fp32", dropout.dropout, Problem({"n": 1 << 24}, {"T": "fp32"})
    dims = {"count": 8192, "height": 50257, "width": 768}
    yield (
        "gather_rows bf16",
        embedding.gather_rows,
        Problem(dims, {"T": "bf16", "I": "i32"}, present=frozenset({"fault"})),
    )
    yield "scatter_add_rows bf16", embedding.scatter_add_rows, Problem(dims, {"T": "fp32", "G": "bf16"})
    dims = {"tokens": 8192, "positions": 1024, "heads": 16, "half": 64, "depth": 128, "x_token": 6144, "y_token": 2048}
    for pairs in (False, True):
        problem = Problem(dims, {"T": "bf16", "U": "fp32"}, {"PAIRS": pairs})
        yield f"rotary {'pairs' if pairs else 'halves'} bf16", rotary.rotary, problem
    dims = {"rows": 64, "units": 1024}
    for kind in ("fp32", "bf16"):
        yield f"lstm_cell {kind}", lstm.lstm_cell, Problem(dims, {"T": kind}, present=frozenset({"bias"}))
        given = frozenset({"bias", "dnew_c"})
        yield f"lstm_cell_grad {kind}", lstm.lstm_cell_grad, Problem(dims, {"T": kind}, present=given)
        images = {"rows": 64 * 56 * 56, "channels": 256}
        vectors = frozenset({"batch_mean", "batch_variance"})
        yield f"batch_norm {kind}", batch_norm.batch_norm, Problem(images, {"T": kind}, present=vectors)
        yield f"batch_norm_grad {kind}", batch_norm.batch_norm_grad, Problem(images, {"T": kind})
    given, vectors = {"TRAINING": False}, vectors | {"kept_mean", "kept_variance"}
    yield "batch_norm given fp32", batch_norm.batch_norm, Problem(images, {"T": "fp32"}, given, vectors)
    yield "batch_norm_grad given fp32", batch_norm.batch_norm_grad, Problem(images, {"T": "fp32"}, given)


def _conv() -> Iterator[tuple[str, Kernel, Problem]]:
    for kind, size, channels, filters, width, stride in (
        ("bf16", 56, 64, 256, 1, 1), ("bf16", 28, 128, 128, 3, 1), ("fp16", 224, 3, 64, 7, 2), ("fp32", 28, 128, 128, 3, 1)
    ):  # fmt: skip
        out = size // stride
        dims = {"places": 64 * out * out, "filters": filters, "window": width * width * channels, "channels": channels}
        dims |= {
            "x_height": size,
            "x_width": size,
            "y_height": out,
            "y_width": out,
            "w_width": width,
            "top": width // 2,
        }
        dims |= {"left": width // 2, "stride_h": stride, "stride_w": stride, "dilation_h": 1, "dilation_w": 1}
        flags = {"ACTIVATION": "relu", "PRECISION": "tf32"}
        problem = Problem(dims, {"T": kind, "Y": kind, "B": "fp32"}, flags, frozenset({"bias"}))
        yield f"conv2d {kind} {size} {channels} {filters} {width}", conv.conv2d, problem
        if (kind, width) == ("bf16", 3):
            flags, present = flags | {"FIRST": True, "ACTIVATION": "gelu_tanh"}, frozenset({"bias", "pre"})
            turned = Problem(dims, {"T": kind, "Y": kind, "B": kind}, flags, present)
            yield f"conv2d first {kind} {size} {channels} {filters} {width}", conv.conv2d, turned
