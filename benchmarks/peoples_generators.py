"""Networks that make texts and images, as their repositories write them: a GPT-2, a recurrent network of characters, a DCGAN.

Small ones of their kind.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.cli import benchmark_main
from benchmarks.peoples import Weights, heads, merged, program, ready
from benchmarks.program import Case

#: Of the GPT-2: heads, width, layers, words of a text, texts, vocabulary.
HEADS, WIDTH, DEPTH, LENGTH, TEXTS, WORDS = 4, 128, 2, 64, 4, 1000
#: Of the recurrent network: characters, units, layers, steps, texts.
CHARACTERS, UNITS, LAYERS, STEPS, LINES = 65, 128, 2, 25, 50
#: Of the DCGAN: images, the size of the noise, channels of the first layer, edge of the smallest layer.
IMAGES, NOISE, CHANNELS, EDGE = 16, 100, 16, 4


def gpt2(training: bool) -> Callable[[ModuleType, Callable[[], Any]], Case]:
    """Logits' loss of next words, or a step of Adam on it, as openai/gpt-2's ``model.py`` computes them."""

    def text(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
        import numpy as np

        w = Weights(tf)

        def norm(x: Any) -> Any:
            g, b = tf.Variable(tf.ones([WIDTH])), tf.Variable(tf.zeros([WIDTH]))
            u = tf.reduce_mean(x, axis=-1, keepdims=True)
            s = tf.reduce_mean(tf.square(x - u), axis=-1, keepdims=True)
            return (x - u) * tf.rsqrt(s + 1e-5) * g + b

        def gelu(x: Any) -> Any:
            return 0.5 * x * (1 + tf.tanh(np.sqrt(2 / np.pi).astype(np.float32) * (x + 0.044715 * tf.pow(x, 3))))

        def conv1d(x: Any, outputs: int) -> Any:
            flat = tf.reshape(x, [-1, int(x.shape[-1])])
            y = tf.matmul(flat, w(int(x.shape[-1]), outputs, scale=0.02)) + tf.Variable(tf.zeros([outputs]))
            return tf.reshape(y, [TEXTS, LENGTH, outputs])

        def attention(x: Any) -> Any:
            parts = tf.split(conv1d(x, 3 * WIDTH), 3, axis=2)
            q, k, v = (heads(tf, part, TEXTS, LENGTH, HEADS) for part in parts)
            scores = tf.matmul(q, k, transpose_b=True) * tf.rsqrt(tf.cast(WIDTH // HEADS, tf.float32))
            rows, columns = tf.range(LENGTH)[:, None], tf.range(LENGTH)
            mask = tf.reshape(tf.cast(rows >= columns, tf.float32), [1, 1, LENGTH, LENGTH])
            scores = scores * mask - 1e10 * (1 - mask)
            scores = tf.exp(scores - tf.reduce_max(scores, axis=-1, keepdims=True))
            mixed = tf.matmul(scores / tf.reduce_sum(scores, axis=-1, keepdims=True), v)
            return conv1d(merged(tf, mixed, [TEXTS, LENGTH, WIDTH]), WIDTH)

        words = tf.placeholder(tf.int32, [TEXTS, LENGTH])
        wte, wpe = w(WORDS, WIDTH, scale=0.02), w(LENGTH, WIDTH, scale=0.01)
        h = tf.gather(wte, words) + tf.gather(wpe, tf.tile(tf.range(LENGTH)[None], [TEXTS, 1]))
        for _ in range(DEPTH):
            h = h + attention(norm(h))
            h = h + conv1d(gelu(conv1d(norm(h), 4 * WIDTH)), WIDTH)
        logits = tf.reshape(tf.matmul(tf.reshape(norm(h), [-1, WIDTH]), wte, transpose_b=True), [TEXTS, LENGTH, WORDS])
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=words[:, 1:], logits=logits[:, :-1])
        )
        fetches = [loss, tf.train.AdamOptimizer(1e-4).minimize(loss)] if training else [loss]
        session = ready(tf, open_session)
        feed = {words: np.random.RandomState(1).randint(0, WORDS, (TEXTS, LENGTH))}
        return Case(lambda: session.run(fetches, feed), lambda: [session.run(loss, feed)])

    return text


def char_rnn(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    """A training step over STEPS characters, states fed and fetched, as sherjilozair/char-rnn-tensorflow's."""
    import numpy as np

    random = np.random.RandomState(1)

    def drawn(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return tf.constant((random.normal(size=[int(side) for side in shape]) * 0.05).astype(np.float32))

    kind = tf.nn.rnn_cell
    inputs, targets = (tf.placeholder(tf.int32, [LINES, STEPS]) for _ in range(2))
    with tf.variable_scope("rnnlm", initializer=drawn):
        cell = kind.MultiRNNCell([kind.BasicLSTMCell(UNITS) for _ in range(LAYERS)])
        initial = cell.zero_state(LINES, tf.float32)
        embedding = tf.get_variable("embedding", [CHARACTERS, UNITS])
        softmax_w = tf.get_variable("softmax_w", [UNITS, CHARACTERS])
        softmax_b = tf.get_variable("softmax_b", [CHARACTERS])
        steps = [tf.squeeze(x, [1]) for x in tf.split(tf.nn.embedding_lookup(embedding, inputs), STEPS, 1)]
        outputs, last = tf.nn.static_rnn(cell, steps, initial_state=initial)
    logits = tf.matmul(tf.reshape(tf.concat(outputs, 1), [-1, UNITS]), softmax_w) + softmax_b
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(targets, [-1]), logits=logits)
    cost = tf.reduce_sum(losses) / LINES / STEPS
    variables = tf.trainable_variables()
    slopes, _ = tf.clip_by_global_norm(tf.gradients(cost, variables), 5.0)
    train = tf.train.AdamOptimizer(0.002).apply_gradients(zip(slopes, variables, strict=True))
    session = ready(tf, open_session)
    state = session.run(initial)
    feed = {
        inputs: random.randint(0, CHARACTERS, (LINES, STEPS)),
        targets: random.randint(0, CHARACTERS, (LINES, STEPS)),
    }
    for (c, h), (c_value, h_value) in zip(initial, state, strict=True):
        feed[c], feed[h] = c_value, h_value
    return Case(lambda: session.run([cost, last, train], feed), lambda: [session.run(cost, feed)])


def dcgan(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    """A step of the discriminator and one of the generator over images of 32 by 32, as carpedm20/DCGAN-tensorflow's."""
    import numpy as np

    weights = Weights(tf)
    owned: dict[str, list[Any]] = {"d": [], "g": []}

    def variable(who: str, *shape: int, scale: float = 0.02) -> Any:
        owned[who].append(weights(*shape, scale=scale))
        return owned[who][-1]

    def norms(who: str, channels: int) -> Any:
        owned[who] += [tf.Variable(tf.ones([channels])), tf.Variable(tf.zeros([channels]))]
        scale, offset = owned[who][-2:]
        return lambda x: tf.nn.fused_batch_norm(x, scale, offset, epsilon=1e-5, is_training=True)[0]

    depths = [4 * CHANNELS, 2 * CHANNELS, CHANNELS, 3]
    g_in = variable("g", NOISE, EDGE * EDGE * depths[0])
    g_norms = [norms("g", depth) for depth in depths[:-1]]
    g_filters = [variable("g", 5, 5, after, before) for before, after in zip(depths, depths[1:], strict=False)]
    d_depths = depths[::-1]
    d_filters = [variable("d", 5, 5, before, after) for before, after in zip(d_depths, d_depths[1:], strict=False)]
    d_norms = [None, *(norms("d", depth) for depth in d_depths[2:])]
    d_out = variable("d", EDGE * EDGE * depths[0], 1)

    def generator(z: Any) -> Any:
        h = tf.nn.relu(g_norms[0](tf.reshape(tf.matmul(z, g_in), [-1, EDGE, EDGE, depths[0]])))
        for number, filters in enumerate(g_filters):
            side = EDGE * 2 ** (number + 1)
            h = tf.nn.conv2d_transpose(h, filters, [IMAGES, side, side, depths[number + 1]], [1, 2, 2, 1])
            h = tf.nn.tanh(h) if number == len(g_filters) - 1 else tf.nn.relu(g_norms[number + 1](h))
        return h

    def discriminator(x: Any) -> Any:
        for filters, norm in zip(d_filters, d_norms, strict=True):
            x = tf.nn.conv2d(x, filters, [1, 2, 2, 1], "SAME")
            x = x if norm is None else norm(x)
            x = tf.maximum(x, 0.2 * x)
        return tf.matmul(tf.reshape(x, [IMAGES, -1]), d_out)

    def cross(logits: Any, value: float) -> Any:
        labels = tf.fill([IMAGES, 1], value)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=labels))

    side = EDGE * 2 ** len(g_filters)
    images, z = tf.placeholder(tf.float32, [IMAGES, side, side, 3]), tf.placeholder(tf.float32, [IMAGES, NOISE])
    real, fake = discriminator(images), discriminator(generator(z))
    d_loss, g_loss = cross(real, 1.0) + cross(fake, 0.0), cross(fake, 1.0)
    train = [
        tf.train.AdamOptimizer(0.0002, beta1=0.5).minimize(loss, var_list=owned[who])
        for who, loss in (("d", d_loss), ("g", g_loss))
    ]
    session = ready(tf, open_session)
    random = np.random.RandomState(1)
    noise = random.uniform(-1, 1, (IMAGES, NOISE)).astype(np.float32)
    feed = {images: np.tanh(random.normal(size=(IMAGES, side, side, 3))).astype(np.float32), z: noise}

    def step() -> None:
        session.run(train[0], feed)
        session.run(train[1], {z: noise})

    return Case(step, lambda: session.run([d_loss, g_loss], feed))


PROGRAMS = (
    program("gpt2", f"loss, {DEPTH} layers of {WIDTH}, {TEXTS} texts of {LENGTH} words", gpt2(False)),
    program("gpt2_training", "the same, Adam", gpt2(True)),
    program("char_rnn", f"training step, {LAYERS} LSTMs of {UNITS}, {LINES} lines of {STEPS} characters", char_rnn),
    program("dcgan", f"step of discriminator and of generator, {IMAGES} images of 32 by 32", dcgan),
)

if __name__ == "__main__":
    sys.exit(benchmark_main("peoples_generators", PROGRAMS))
