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

from examples import digits_cnn, gpt, grammar, lstm_lm, sharded_embedding, training, transformer, word2vec

pytestmark = pytest.mark.slow

_LSTM = "--units 32 --text 8000 --words 10 --length 8 --rate 8"

#: Program and what tells two runs apart -> options of a size that a test can afford, and by how much the loss falls at least.
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
    "lstm_lm": (f"--steps 120 --layers 1 --keep 0.9 {_LSTM}", 0.8),
    "lstm_lm sampled": (f"--steps 120 --loss sampled --sampled 16 {_LSTM}", 0.8),
    "word2vec": ("--steps 700 --subjects 4 --words 8 --width 16 --text 4000 --sampled 16", 0.95),
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Products this small gain nothing by threads, which wait for each other where the machine is busy."""
    with threadpoolctl.threadpool_limits(1):
        yield


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_trains_and_tells_of_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    options, falls_to = PROGRAMS[name]
    done = importlib.import_module(f"examples.{name.split()[0]}").main(["--backend", "cpu", *options.split()])
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
    if name.startswith("lstm_lm"):
        reached, best = done.results.values()
        assert best < reached < 15, "blind to order, a model of these words comes to 24 at best"
    if name == "word2vec":
        assert next(iter(done.results.values())) > 0.9, "by chance it would be 0.25"


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


def test_a_window_goes_on_where_the_one_before_ended() -> None:
    """Two windows one after the other give what one of both gives, by the state in variables."""
    sizes = (9, 5, 2)
    words = np.random.RandomState(0).randint(9, size=(3, 8))
    whole, window = (tf.placeholder(tf.int32, [3, length]) for length in (8, 4))
    memory = lstm_lm.remembered("memory", 3, *sizes[1:])
    with tf.variable_scope("model", reuse=tf.AUTO_REUSE):
        at_once, _ = lstm_lm.inference(whole, *sizes)
        known, state = lstm_lm.inference(window, *sizes, state=memory)
    with tf.control_dependencies([known]):
        remember = lstm_lm.remember(memory, state)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        parts = [sess.run([known, remember], {window: words[:, start : start + 4]})[0] for start in (0, 4)]
        np.testing.assert_allclose(np.concatenate(parts, 1), sess.run(at_once, {whole: words}), rtol=1e-5, atol=1e-7)


def test_a_step_of_the_language_model_is_clipped() -> None:
    """Of a loss whose gradient is long, the step is as long as the norm says."""
    v = tf.get_variable("v", [4], initializer=tf.zeros_initializer())
    step = lstm_lm.clipped(tf.train.GradientDescentOptimizer(1.0), tf.reduce_sum(100.0 * v), 5.0, None)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(step)
        np.testing.assert_allclose(sess.run(v), np.full(4, -2.5), rtol=1e-6)


def test_the_grammar_agrees_in_number_and_knows_its_perplexity() -> None:
    text = grammar.write(4000, 3, np.random.RandomState(5))
    assert (np.diff(np.bincount(text.words)) <= 0).all(), "the most frequent word comes first"
    words = [text.vocabulary[number] for number in reversed(text.words)]

    def noun() -> bool:
        """Read one with all that belongs to it; whether there are many."""
        assert words.pop() == "the"
        if words[-1].startswith("adjective"):
            words.pop()
        word = words.pop()
        assert word.startswith("noun")
        if words[-1] == "that":
            words.pop()
            verb(word.endswith("s"))
        return word.endswith("s")

    def verb(many: bool) -> None:
        word = words.pop()
        assert word.endswith("s") is not many and word.startswith(("see", "sleep"))
        if word.startswith("see"):
            noun()

    while words:
        verb(noun())
        assert words.pop() == "."
    # with one word of each kind, only the turns of the grammar surprise: fewer than the words by far
    assert 1 < grammar.write(4000, 1, np.random.RandomState(5)).best < text.best < len(text.vocabulary)


def test_words_that_are_paired_stand_in_one_sentence() -> None:
    random = np.random.RandomState(2)
    text = word2vec.write(300, 3, 5, random)
    beside = {
        (int(a), int(b))
        for s in text.sentences
        for i, a in enumerate(s)
        for b in s[max(0, i - word2vec.REACH) : i + word2vec.REACH + 1]
    }
    words, neighbours = word2vec.pairs(text, 200, random)
    assert neighbours.shape == (200, 1) and {*zip(words.tolist(), neighbours[:, 0].tolist(), strict=True)} <= beside
    for sentence in text.sentences:
        assert len({*text.subjects[sentence]} - {-1}) <= 1, "a sentence has one subject"
