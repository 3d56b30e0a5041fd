"""The benchmark of GPUs, tried out: processes that fail or hang, the table, and graphdock's steps on the cpu; no times."""

from __future__ import annotations

import json
import sys
from typing import Any

import graphdock as tf
import pytest

from benchmarks import gpu, gpu_steps
from benchmarks.gpu_steps import Asked
from benchmarks.network_sessions import build


def _process(*lines: str) -> list[str]:
    return [sys.executable, "-c", "\n".join(["import os, signal, sys", *lines])]


def _printed(framework: str, seconds: float = 1.0) -> str:
    row = {"program": "null step", "precision": "float32", "framework": framework, "seconds": seconds}
    return f"print({json.dumps(json.dumps(row))}, flush=True)"


def test_a_process_that_fails_or_hangs_costs_its_own_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "SHARES", {"hangs": 0.05})
    rows: list[dict[str, Any]] = []
    commands = {
        "fails": _process(_printed("fails"), "sys.exit('out of memory')"),
        "dies": _process("os.kill(os.getpid(), signal.SIGSEGV)"),
        "hangs": _process("signal.pause()"),
        "good": _process("print('a warning')", _printed("good")),
    }
    gpu.run_all(commands, 60.0, rows.append)
    assert [(r["framework"], "seconds" in r) for r in rows] == [
        ("fails", True), ("fails", False), ("dies", False), ("hangs", False), ("good", True),
    ]  # fmt: skip
    assert rows[1]["error"] == "exit status 1: out of memory" and rows[2]["error"].startswith("exit status -11")
    assert "its share of the budget" in rows[3]["error"]


def test_the_table_compares_with_graphdock_and_says_what_is_missing() -> None:
    every = [Asked("product 1024", "tf32"), Asked("vgg", "bfloat16")]
    rows = [
        {"program": "product 1024", "precision": "tf32", "framework": "torch", "seconds": 0.5e-3},
        {"program": "product 1024", "precision": "tf32", "framework": "graphdock", "seconds": 1e-3},
        {"program": "vgg", "precision": "bfloat16", "framework": "jax", "error": "ImportError: jax"},
        {"framework": "torch", "error": "ended"},
    ]
    product, own, missing, whole = (line.split() for line in gpu.table(rows, every))
    assert product[:3] == ["product", "1024", "tf32"] and product[4:] == ["42.9", "TFLOP/s", "x", "0.50"]
    assert own[4:] == ["21.5", "TFLOP/s", "x", "1.00"] and missing[-2:] == ["ImportError:", "jax"]
    assert whole == ["torch:", "ended"]
    assert Asked("copy to the GPU", "float32").per_second(1.0) == pytest.approx(0.268435456)


def test_kernels_are_compared_with_what_the_card_did_at_most_in_the_run() -> None:
    every = [Asked("softmax", "bfloat16"), Asked("dense layer", "bfloat16")]
    rows = [
        {"program": "softmax", "precision": "bfloat16", "framework": "graphdock", "seconds": 1e-3},
        {"program": "dense layer", "precision": "bfloat16", "framework": "graphdock", "seconds": 2e-3},
    ]
    assert all("of the card's" not in line for line in gpu.table(rows, every))
    rows += [
        {"program": "copy on the GPU", "precision": "float32", "framework": "torch", "seconds": 1e-3},
        {"program": "copy on the GPU", "precision": "float32", "framework": "graphdock", "seconds": 2e-3},
        {"program": "product 8192", "precision": "tf32", "framework": "torch", "seconds": 1e-9},
        {"program": "product 8192", "precision": "bfloat16", "framework": "torch", "seconds": 20e-3},
    ]
    softmax, dense = gpu.table(rows, every)
    moved, copied = 4 * 2 * 2 * 16384 * 4096, 4 * 2 * 4 * (1 << 26)
    assert softmax.split()[:4] == ["softmax", "graphdock", f"{moved / 1e6:.1f}", "GB/s"]
    assert softmax.endswith(f"{moved / copied:.2f} of the card's")
    operations, most = 4 * 2 * 8192 * 4096 * 4096 / 2e-3, 10 * 2 * 8192**3 / 20e-3
    assert dense.endswith(f"{operations / most:.2f} of the card's")


def test_frameworks_that_compute_no_single_kernels_have_no_rows_of_them() -> None:
    every = [Asked(name, "float32", "cpu", True) for name in ("softmax", "copy on the GPU")]
    assert not list(gpu.work("jax", every, 0.0)) and not list(gpu.work("graphdock/own", every[:1], 0.0))
    dense = [*every, Asked("dense layer", "bfloat16", "cpu", True)]
    for framework in ("graphdock/persistent", "graphdock/tiles"):
        (row,) = gpu.work(framework, dense, 0.0)
        assert row["program"] == "dense layer" and row["seconds"] > 0


def test_every_program_runs_on_the_cpu() -> None:
    """All but the networks, one of which stands for them; what fails is a row with the reason."""
    every = [
        Asked(name, "float32", "cpu", True) for name in (*gpu_steps.PLAIN, "alexnet", "softmax", "gelu with gradient")
    ]
    rows = list(gpu.work("graphdock", every, 0.0))
    assert [r["program"] for r in rows if "seconds" in r] == [a.program for a in every], rows
    (failed,) = gpu.work("graphdock", [Asked("no such thing", "float32", "cpu")], 0.0)
    assert failed["error"].startswith("ValueError") and "seconds" not in failed


def test_words_that_are_not_known_are_refused() -> None:
    with pytest.raises(SystemExit, match=r"no such thing: vgg19; there are .*googlenet"):
        gpu.main(["--programs", "vgg19", "--device", "cpu"])


@pytest.mark.parametrize("network", ["lstm_lm", "transformer", "googlenet"])
def test_networks_in_bfloat16_keep_wide_variables(network: str) -> None:
    tf.reset_default_graph()  # whose products would be looked at too
    made = build(tf, network, gpu_steps.NETWORKS[network][2], "bfloat16")
    assert {v.dtype.base_dtype for v in tf.trainable_variables()} == {tf.float32}
    products = [
        op for op in tf.get_default_graph().get_operations() if op.type in ("MatMul", "BatchMatMulV2", "Conv2D")
    ]
    assert products and {op.outputs[0].dtype for op in products} == {tf.bfloat16}
    assert [loss.dtype for loss in made.losses] == [tf.float32] and {p.dtype for p in made.feed} <= {
        tf.float32,
        tf.int32,
    }
