"""The programs of examples/ train some steps at reduced size, say how far they are, and say what a step is.

That their losses and gradients are right is shown by tests/oracle/test_networks.py.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import Any

import graphdock as tf
import numpy as np
import pytest
import threadpoolctl

from examples import digits_cnn, gpt, sharded_embedding, training, transformer

pytestmark = pytest.mark.slow

#: Program -> options of a size that a test can afford, and by how much the loss falls at least.
PROGRAMS: dict[str, tuple[str, float]] = {
    "alexnet": ("--steps 4 --batch 2 --narrow 16 --classes 10 --rate 0.003", 0.7),
    "overfeat": ("--steps 4 --batch 2 --narrow 16 --classes 10 --rate 0.003", 0.7),
    "vgg": ("--steps 4 --batch 1 --narrow 32 --classes 10", 0.9),
    "googlenet": ("--steps 4 --batch 1 --narrow 16 --classes 10", 0.9),
    "digits_cnn": ("--steps 700 --batch 32 --width 16 --rate 0.006 --seed 1", 0.1),
    "mlp": ("--steps 200 --hidden 32", 0.3),
    "dcgan": ("--steps 30 --batch 16 --width 8 --rate 0.002", 0.7),
    "transformer": ("--steps 60 --batch 8 --length 8 --width 16 --heads 2 --vocabulary 8 --rate 0.01", 0.95),
    "gpt": ("--steps 40 --batch 4 --length 16 --width 16 --heads 2 --write 5 --rate 0.01", 0.85),
    "sharded_embedding": ("--steps 300 --users 40 --things 30 --strategy mod", 0.3),
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Products this small gain nothing by threads, which wait for each other where the machine is busy."""
    with threadpoolctl.threadpool_limits(1):
        yield


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_trains_and_tells_of_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    options, falls_to = PROGRAMS[name]
    done = importlib.import_module(f"examples.{name}").main(["--backend", "cpu", *options.split()])
    steps = int(options.split()[1])
    tail = max(1, steps // 10)
    assert (
        len(done.losses) == steps and np.isfinite(done.losses).all() and np.isfinite(list(done.results.values())).all()
    )
    assert np.mean(done.losses[-tail:]) < falls_to * np.mean(done.losses[:tail])
    told = capsys.readouterr().out
    assert re.search(rf"step +{steps} of {steps} +loss +{done.losses[-1]:.4f} +[\d.,]+ s", told)
    assert "one step: " in told and "after pruning and passes" in told and " cpu." in told
    for result in done.results:
        assert f"{result} {done.results[result]:.4f}" in told
    if name == "digits_cnn":
        assert next(iter(done.results.values())) >= digits_cnn.GOAL


def test_a_wrong_count_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        training.command_line("A program.", 1, 1, ["--steps", "0"])
    assert "must be positive" in capsys.readouterr().err


def test_the_summary_counts_the_kernels_it_leaves_out() -> None:
    class Explained:
        def kernels(self) -> dict[str, int]:
            return {"cpu.a": 1, "cpu.b": 3, "cpu.c": 2}

        def summary(self) -> str:
            return "six nodes"

    assert training.summary(Explained(), kernels=2) == "one step: six nodes\nkernels:  3 cpu.b, 2 cpu.c and 1 others"


def test_palindromes_have_gaps_whose_pair_is_seen() -> None:
    seen, whole, gaps = transformer.sequences(np.random.RandomState(3), 50, 12, 9)
    np.testing.assert_array_equal(whole, whole[:, ::-1])
    np.testing.assert_array_equal(seen, np.where(gaps, 0, whole))
    assert gaps.any(1).all() and not (gaps * gaps[:, ::-1]).any() and whole.min() > 0


def test_no_letter_looks_ahead() -> None:
    letters = tf.placeholder(tf.int32, [1, 6])
    logits = gpt.decode(letters, 5, 8, 2, 2)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        one, other = (sess.run(logits, {letters: [[1, 2, 3, 4, 0, last]]}) for last in (1, 2))
    np.testing.assert_array_equal(one[:, :-1], other[:, :-1])
    assert np.abs(one[:, -1] - other[:, -1]).max() > 0


def test_both_strategies_reach_every_shard() -> None:
    """A lookup of all ids reads each row of each shard once."""
    for strategy in ("div", "mod"):
        with tf.Graph().as_default():
            ids = tf.range(10)
            sharded_embedding.inference(ids, ids, (10, 10), 2, 3, strategy)
            parts: list[Any] = [v for v in tf.trainable_variables() if v.name.startswith("users/")]
            table = tf.nn.embedding_lookup(parts, ids, partition_strategy=strategy)
            with tf.Session() as sess:
                sess.run(tf.global_variables_initializer())
                rows, whole = sess.run([table, tf.concat(parts, 0)])
        assert len(parts) == 3
        np.testing.assert_array_equal(np.sort(rows, 0), np.sort(whole, 0))
