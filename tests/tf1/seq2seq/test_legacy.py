"""``tf.contrib.legacy_seq2seq`` beside the same arithmetic in NumPy, with the variables' names and values of TensorFlow's."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

legacy = tf.contrib.legacy_seq2seq
RANDOM = np.random.default_rng(5)


def constants(*shape: int, steps: int) -> list[tf.Tensor]:
    return [tf.constant(RANDOM.normal(size=shape), tf.float32) for _ in range(steps)]


def values(sess) -> dict[str, np.ndarray]:
    sess.run(tf.global_variables_initializer())
    return {v.op.name: sess.run(v) for v in tf.global_variables()}


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_a_decoder_is_a_cell_over_the_steps() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        inputs = constants(2, 3, steps=3)
        outputs, state = legacy.basic_rnn_seq2seq(inputs, inputs, tf.nn.rnn_cell.BasicRNNCell(4))
        held = values(sess)
        assert set(held) == {
            f"basic_rnn_seq2seq/{part}/basic_rnn_cell/{name}"
            for part in ("rnn", "rnn_decoder")
            for name in ("kernel", "bias")
        }
        xs, got = sess.run([inputs, [outputs, state]])
    h = np.zeros([2, 4])
    for part in ("rnn", "rnn_decoder"):
        kernel, bias = (held[f"basic_rnn_seq2seq/{part}/basic_rnn_cell/{n}"] for n in ("kernel", "bias"))
        seen = []
        for x in xs:
            h = np.tanh(np.concatenate([x, h], 1) @ kernel + bias)
            seen.append(h)
    np.testing.assert_allclose(got[0], seen, rtol=1e-5, atol=1e-6)  # tanh of sums: an error is absolute, of float32
    np.testing.assert_allclose(got[1], h, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("initial_state_attention", [False, True])
@pytest.mark.parametrize("num_heads", [1, 2])
def test_attention_is_a_weighted_mean_of_the_states(num_heads: int, initial_state_attention: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        inputs, start = constants(2, 3, steps=3), constants(2, 4, steps=1)[0]
        states = tf.constant(RANDOM.normal(size=[2, 5, 6]), tf.float32)
        outputs, state = legacy.attention_decoder(
            inputs,
            start,
            states,
            tf.nn.rnn_cell.BasicRNNCell(4),
            output_size=7,
            num_heads=num_heads,
            initial_state_attention=initial_state_attention,
        )
        held = {name.removeprefix("attention_decoder/"): v for name, v in values(sess).items()}
        xs, h, attended, got = sess.run([inputs, start, states, [outputs, state]])

    def linear(scope: str, *parts: np.ndarray) -> np.ndarray:
        return np.concatenate(parts, 1) @ held[f"{scope}kernel"] + held[f"{scope}bias"]

    def attend(query: np.ndarray) -> list[np.ndarray]:
        means = []
        for head in range(num_heads):
            features = attended @ held[f"AttnW_{head}"][0, 0]
            y = linear(f"Attention_{head}/", query)[:, None]
            scores = (held[f"AttnV_{head}"] * np.tanh(features + y)).sum(-1)
            means.append((softmax(scores)[..., None] * attended).sum(1))
        return means

    means = attend(h) if initial_state_attention else [np.zeros([2, 6])] * num_heads
    wanted = []
    for x in xs:
        mixed = linear("", x, *means)
        h = np.tanh(linear("basic_rnn_cell/", mixed, h))
        means = attend(h)
        wanted.append(linear("AttnOutputProjection/", h, *means))
    np.testing.assert_allclose(got[0], wanted, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(got[1], h, rtol=1e-4, atol=1e-6)


def symbols(steps: int) -> list[tf.Tensor]:
    return [tf.constant(RANDOM.integers(0, 5, [3]), tf.int32) for _ in range(steps)]


@pytest.mark.parametrize("tied", [False, True])
def test_symbols_that_are_fed_back_are_the_likeliest(tied: bool) -> None:
    """Feeding back gives what a decoder gives that reads the likeliest symbols of these outputs."""

    def model(steps: list[tf.Tensor], feed_previous: object) -> list[tf.Tensor]:
        cell = tf.nn.rnn_cell.GRUCell(4)
        if tied:
            return legacy.embedding_tied_rnn_seq2seq(read, steps, cell, 5, 6, feed_previous=feed_previous)[0]
        return legacy.embedding_rnn_seq2seq(read, steps, cell, 5, 5, 6, feed_previous=feed_previous)[0]

    with tf.Graph().as_default(), tf.Session() as sess:
        read, first = symbols(2), symbols(3)
        with tf.variable_scope("model", reuse=tf.AUTO_REUSE):
            fed = model(first, True)
            sess.run(tf.global_variables_initializer())
            likeliest = [tf.cast(tf.argmax(logits, 1), tf.int32) for logits in fed]
            told = model([first[0], *likeliest[:-1]], False)
            which = tf.placeholder(tf.bool, [])
            either = model(first, which)
            plain = model(first, False)
        np.testing.assert_allclose(*sess.run([fed, told]), rtol=1e-5)
        np.testing.assert_allclose(sess.run(either, {which: True}), sess.run(fed), rtol=1e-5)
        np.testing.assert_allclose(sess.run(either, {which: False}), sess.run(plain), rtol=1e-5)
        assert not np.allclose(*sess.run([fed, plain]))


def test_buckets_share_variables_and_train() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.set_random_seed(3)
        read, written, targets = symbols(4), symbols(4), symbols(4)
        weights = [tf.ones([3]) for _ in range(4)]

        def model(inputs, steps):
            cell = tf.nn.rnn_cell.BasicLSTMCell(8)
            return legacy.embedding_attention_seq2seq(inputs, steps, cell, 5, 5, 6)

        outputs, losses = legacy.model_with_buckets(read, written, targets, weights, [(2, 3), (4, 4)], model)
        assert [len(each) for each in outputs] == [3, 4]
        names = {v.op.name for v in tf.global_variables()}
        assert "embedding_attention_seq2seq/rnn/embedding_wrapper/embedding" in names
        assert "embedding_attention_seq2seq/embedding_attention_decoder/embedding" in names
        assert len(names) == len(tf.global_variables()) == 16
        train = tf.train.AdamOptimizer(0.1).minimize(losses[1])
        sess.run(tf.global_variables_initializer())
        before = sess.run(losses[1])
        for _ in range(20):
            sess.run(train)
        assert sess.run(losses[1]) < before / 2
        with pytest.raises(ValueError, match=r"Length of targets \(2\) must be at least that of last bucket \(4\)"):
            legacy.model_with_buckets(read, written, targets[:2], weights, [(4, 4)], model)


def test_losses_of_lists_are_weighted_cross_entropies() -> None:
    logits = RANDOM.normal(size=[3, 2, 4])
    labels, weights = RANDOM.integers(0, 4, [3, 2]), RANDOM.uniform(size=[3, 2])
    entropy = -np.log(np.take_along_axis(softmax(logits), labels[..., None], 2))[..., 0] * weights
    with tf.Graph().as_default(), tf.Session() as sess:
        lists = [[tf.constant(each) for each in array] for array in (logits, labels, weights)]
        np.testing.assert_allclose(
            sess.run(legacy.sequence_loss_by_example(*lists)), entropy.sum(0) / weights.sum(0), rtol=1e-6
        )
        summed = legacy.sequence_loss(*lists, average_across_timesteps=False, average_across_batch=False)
        np.testing.assert_allclose(sess.run(summed), entropy.sum(), rtol=1e-6)
        with pytest.raises(ValueError, match="Lengths of logits, weights, and targets must be the same 3, 2, 3"):
            legacy.sequence_loss(lists[0], lists[1], lists[2][:2])


def test_bad_decoders_are_told() -> None:
    with tf.Graph().as_default():
        cell, states = tf.nn.rnn_cell.BasicRNNCell(4), tf.zeros([2, 5, 6])
        with pytest.raises(ValueError, match="at least 1 input"):
            legacy.attention_decoder([], tf.zeros([2, 4]), states, cell)
        with pytest.raises(ValueError, match="less than 1 heads"):
            legacy.attention_decoder([tf.zeros([2, 3])], tf.zeros([2, 4]), states, cell, num_heads=0)
        with pytest.raises(ValueError, match=r"Shape\[2\] of attention_states must be known"):
            legacy.attention_decoder(
                [tf.zeros([2, 3])], tf.zeros([2, 4]), tf.placeholder(tf.float32, [2, 5, None]), cell
            )


def test_one_encoder_has_several_decoders() -> None:
    """Each decoder is the one of ``embedding_rnn_decoder`` from the encoder's last state."""
    symbols = {"en": 4, "fr": 5}
    with tf.Graph().as_default(), tf.Session() as sess:
        steps = [tf.constant([0, 2]), tf.constant([1, 1])]
        cells = {name: tf.nn.rnn_cell.GRUCell(3) for name in ("en", "fr")}
        outputs, states = legacy.one2many_rnn_seq2seq(
            steps, {"en": steps, "fr": steps[:1]}, tf.nn.rnn_cell.GRUCell(3), cells, 3, symbols, 2
        )
        assert {name: [o.shape.as_list() for o in each] for name, each in outputs.items()} == {
            "en": [[2, 4]] * 2,
            "fr": [[2, 5]],
        }
        held = values(sess)
        inside = "one2many_rnn_seq2seq/one2many_decoder_fr/embedding_rnn_decoder/embedding"
        assert held[inside].shape == (5, 2) and states["fr"].shape.as_list() == [2, 3]
        fed = tf.placeholder(tf.bool, [])
        cells = {"en": tf.nn.rnn_cell.GRUCell(3)}
        chosen, _ = legacy.one2many_rnn_seq2seq(
            steps, {"en": steps}, tf.nn.rnn_cell.GRUCell(3), cells, 3, symbols, 2, feed_previous=fed, scope="chosen"
        )
        values(sess)
        first, second = sess.run(chosen["en"], {fed: True}), sess.run(chosen["en"], {fed: False})
        np.testing.assert_allclose(first[0], second[0])
