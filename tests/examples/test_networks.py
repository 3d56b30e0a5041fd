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

from examples import (
    digits_cnn,
    gpt,
    grammar,
    lstm_lm,
    seq2seq,
    sharded_embedding,
    training,
    transformer,
    tree_lstm,
    word2vec,
)

pytestmark = pytest.mark.slow

_LSTM = "--units 32 --text 8000 --words 10 --length 8 --rate 8"

#: Program and what tells two runs apart -> options of a size that a test can afford, and by how much the loss falls at least.
PROGRAMS: dict[str, tuple[str, float]] = {
    "alexnet": ("--steps 4 --batch 2 --narrow 16 --classes 10 --rate 0.003", 0.7),
    "overfeat": ("--steps 4 --batch 2 --narrow 16 --classes 10 --rate 0.003", 0.7),
    "vgg": ("--steps 4 --batch 1 --narrow 32 --classes 10", 0.9),
    "googlenet": ("--steps 4 --batch 1 --narrow 16 --classes 10", 0.9),
    "inception_v3": ("--steps 4 --batch 2 --narrow 16 --classes 10 --rate 0.01", 0.9),
    "digits_cnn": ("--steps 700 --batch 32 --width 16 --rate 0.006 --seed 1", 0.1),
    "mlp": ("--steps 200 --hidden 32", 0.3),
    "dcgan": ("--steps 30 --batch 16 --width 8 --rate 0.002", 0.7),
    "transformer": ("--steps 60 --batch 8 --length 8 --width 16 --heads 2 --vocabulary 8 --rate 0.01", 0.95),
    "gpt": ("--steps 40 --batch 4 --length 16 --width 16 --heads 2 --write 5 --rate 0.01", 0.85),
    "seq2seq": ("--steps 120 --length 4 --vocabulary 8 --units 32 --batch 32 --rate 0.01", 0.05),
    "tree_lstm": ("--steps 90 --depth 3 --units 16 --width 8 --rate 0.02", 0.1),
    "sharded_embedding": ("--steps 300 --users 40 --things 30 --strategy mod", 0.3),
    "lstm_lm": (f"--steps 120 --layers 1 --keep 0.9 {_LSTM}", 0.8),
    "lstm_lm sampled": (f"--steps 120 --loss sampled --sampled 16 {_LSTM}", 0.8),
    "word2vec": ("--steps 700 --subjects 4 --words 8 --width 16 --text 4000 --sampled 16", 0.95),
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Products this small gain nothing by threads, which wait for each other where the machine is busy. Each test has its graph."""
    with threadpoolctl.threadpool_limits(1), tf.Graph().as_default():
        yield


@pytest.mark.sampled(6)
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
    if name == "seq2seq":
        assert done.results["new sequences said without a fault"] > 0.95
    if name == "tree_lstm":
        assert done.results["accuracy on longer sentences"] > 0.97
        assert 0.5 < done.results["accuracy of a bag of words"] < 0.8, "the structure does not matter"


def test_a_wrong_count_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        training.command_line("A program.", ["--steps", "0"])
    assert "must be positive" in capsys.readouterr().err
    options = training.command_line("A program.", ["--rate", "2"], batch=8, rate=(0.5, "a rate"))
    assert (options.steps, options.batch, options.rate) == (1000, 8, 2.0)


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


def test_a_sequence_backwards_has_an_end() -> None:
    source, lengths, target = seq2seq.sequences(np.random.RandomState(3), 40, 6, 9)
    for words, count, backwards in zip(source, lengths, target, strict=True):
        assert (words[:count] > 0).all() and (words[count:] == seq2seq.END).all()
        assert backwards.tolist() == [*words[:count][::-1], *[seq2seq.END] * (7 - count)]


def test_a_hundred_trees_have_few_plans() -> None:
    """Each tree by itself, of another structure: its logits are those of a recursion in NumPy, and plans stay few."""
    random = np.random.RandomState(2)
    drawn = {tree: good for tree, good in (tree_lstm.sentence(random, 6) for _ in range(400))}
    trees = sorted(drawn, key=repr)[:100]
    nodes = tree_lstm.placeholders()
    logits = tree_lstm.inference(nodes, len(tree_lstm.WORDS), 4, 5)
    plans: set[Any] = set()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        v = dict(zip((v.op.name for v in tf.trainable_variables()), sess.run(tf.trainable_variables()), strict=True))
        for tree in trees:
            metadata = tf.RunMetadata()
            found = sess.run(logits, dict(zip(nodes, tree_lstm.forest([tree]), strict=True)), tf.RunOptions(), metadata)
            plans.add(metadata.plan)
            want = _state(tree, v)[1] @ v["logits/kernel"] + v["logits/bias"]
            np.testing.assert_allclose(found[0], want, rtol=1e-4, atol=1e-5)
    assert len({str(_shape(tree)) for tree in trees}) > 40
    assert len(plans) <= 9, "eight for shapes that came first, and one for any"


def _shape(tree: Any) -> Any:
    return None if isinstance(tree, str) else tuple(_shape(child) for child in tree)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _state(tree: Any, v: dict[str, Any]) -> tuple[Any, Any]:
    """c and h of a tree."""
    if isinstance(tree, str):
        x = v["embedding"][tree_lstm.WORDS.index(tree)]
        i, o, u = np.split(x @ v["leaf/kernel"] + v["leaf/bias"], 3)
        c = _sigmoid(i) * np.tanh(u)
    else:
        (c1, h1), (c2, h2) = (_state(child, v) for child in tree)
        i, f1, f2, o, u = np.split(np.concatenate([h1, h2]) @ v["inner/kernel"] + v["inner/bias"], 5)
        c = _sigmoid(i) * np.tanh(u) + _sigmoid(f1 + 1) * c1 + _sigmoid(f2 + 1) * c2
    return c, _sigmoid(o) * np.tanh(c)


def test_a_sentence_is_good_by_its_structure() -> None:
    """The label of a tree against its reading; the same words in another tree say something else."""

    def good(tree: Any) -> bool:
        if isinstance(tree, str):
            return tree in tree_lstm.GOOD
        first, second = tree
        if first == "not":
            return not good(second)
        return good(second[1]) if second[0] == "but" else good(first)

    def words(tree: Any) -> list[str]:
        return [tree] if isinstance(tree, str) else [w for child in tree for w in words(child)]

    random = np.random.RandomState(0)
    said: dict[str, set[bool]] = {}
    for _ in range(2000):
        tree, label = tree_lstm.sentence(random, 3)
        assert good(tree) == label
        said.setdefault(" ".join(words(tree)), set()).add(label)
    assert any(len(labels) == 2 for labels in said.values())


def test_gradients_of_a_forest_are_those_of_its_trees() -> None:
    """The mean over trees by themselves; a forest's loop has levels of every number of nodes."""
    random = np.random.RandomState(1)
    trees, good = zip(*[tree_lstm.sentence(random, 4) for _ in range(7)], strict=True)
    nodes, labels = tree_lstm.placeholders(), tf.placeholder(tf.int32, [None])
    both = [tree_lstm.inference(nodes, 9, 3, 4), tree_lstm.bag_of_words(nodes, 9)]
    loss = tf.add_n([tree_lstm.loss_of(logits, labels) for logits in both])
    gradients = [tf.convert_to_tensor(g) for g in tf.gradients(loss, tf.trainable_variables())]

    def feed(trees: Any, good: Any) -> dict[Any, Any]:
        return {**dict(zip(nodes, tree_lstm.forest(trees), strict=True)), labels: good}

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        whole = sess.run([loss, *gradients], feed(trees, good))
        each = [sess.run([loss, *gradients], feed([tree], [g])) for tree, g in zip(trees, good, strict=True)]
    for found, parts in zip(whole, zip(*each, strict=True), strict=True):
        np.testing.assert_allclose(found, np.mean(parts, 0), rtol=1e-4, atol=1e-6)
