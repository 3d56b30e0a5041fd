"""Networks that people bring, written as their repositories write them: a BERT, a graph convolution over a sparse matrix, FaceNet.

Small ones of their kind: what costs in them is what costs in the repositories' own, as `pow(x, 3)` in GELU, products of sparse with
dense matrices, and convolutions of many shapes one after the other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.cli import benchmark_main
from benchmarks.peoples import Weights, heads, merged, program, ready
from benchmarks.program import Case

HEADS, WIDTH, DEPTH, LENGTH, BATCH, WORDS = 2, 128, 2, 128, 8, 3000
NODES, EDGES, FEATURES, HIDDEN, CLASSES = 2708, 5429, 1433, 16, 7
SIDE = 160


def bert_loss(tf: ModuleType, words: Any, seen: Any, labels: Any) -> Any:
    """Loss of two classes of a BERT over words [BATCH, LENGTH], as google-research/bert's; ``seen`` is 1 where there is a word."""
    w = Weights(tf)

    def dense(x: Any, outputs: int) -> Any:
        return tf.nn.bias_add(tf.matmul(x, w(int(x.shape[-1]), outputs)), tf.Variable(tf.zeros([outputs])))

    def norm(x: Any) -> Any:
        mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
        scale, offset = tf.Variable(tf.ones([WIDTH])), tf.Variable(tf.zeros([WIDTH]))
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-12)

    def gelu(x: Any) -> Any:
        return x * (0.5 * (1.0 + tf.tanh(0.7978845608028654 * (x + 0.044715 * tf.pow(x, 3)))))

    x = tf.gather(w(WORDS, WIDTH, scale=0.02), words) + w(LENGTH, WIDTH, scale=0.02)
    x = tf.reshape(norm(x), [-1, WIDTH])
    hidden = (1.0 - tf.reshape(seen, [BATCH, 1, 1, LENGTH])) * -10000.0
    for _ in range(DEPTH):
        q, k, v = (heads(tf, dense(x, WIDTH), BATCH, LENGTH, HEADS) for _ in range(3))
        scores = tf.matmul(q, k, transpose_b=True) * (1.0 / float(WIDTH // HEADS) ** 0.5) + hidden
        mixed = merged(tf, tf.matmul(tf.nn.softmax(scores), v), [-1, WIDTH])
        x = norm(dense(mixed, WIDTH) + x)
        x = norm(dense(gelu(dense(x, 4 * WIDTH)), WIDTH) + x)
    first = tf.squeeze(tf.reshape(x, [BATCH, LENGTH, WIDTH])[:, 0:1, :], axis=1)
    logits = dense(tf.tanh(dense(first, WIDTH)), 2)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def bert(training: bool) -> Callable[[ModuleType, Callable[[], Any]], Case]:
    """The forward pass, or a step of Adam with clipped gradients."""

    def text(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
        import numpy as np

        random = np.random.RandomState(1)
        words, labels = tf.placeholder(tf.int32, [BATCH, LENGTH]), tf.placeholder(tf.int32, [BATCH])
        seen = tf.placeholder(tf.float32, [BATCH, LENGTH])
        loss = bert_loss(tf, words, seen, labels)
        fetches = [loss]
        if training:
            variables = tf.trainable_variables()
            slopes, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
            fetches.append(tf.train.AdamOptimizer(1e-4).apply_gradients(zip(slopes, variables, strict=True)))
        session = ready(tf, open_session)
        feed = {
            words: random.randint(0, WORDS, (BATCH, LENGTH)),
            labels: random.randint(0, 2, BATCH),
            seen: (np.arange(LENGTH) < random.randint(9, LENGTH, (BATCH, 1))).astype(np.float32),
        }
        return Case(lambda: session.run(fetches, feed), lambda: [session.run(loss, feed)])

    return text


def gcn(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    """A training step of two graph convolutions over a graph of Cora's size with sparse features, as tkipf/gcn's."""
    import numpy as np

    random = np.random.RandomState(1)

    def sparse(rows: Any, columns: Any, values: Any, shape: tuple[int, int]) -> tuple[Any, Any, tuple[int, int]]:
        places = np.unique(np.stack([rows, columns], 1), axis=0).astype(np.int64)
        return places, np.resize(values, len(places)).astype(np.float32), shape

    ends = random.randint(0, NODES, (2, EDGES))
    own = np.arange(NODES)
    rows, columns = np.concatenate([ends[0], ends[1], own]), np.concatenate([ends[1], ends[0], own])
    graph = sparse(rows, columns, random.uniform(0.1, 0.5, 500), (NODES, NODES))
    known = sparse(random.randint(0, NODES, 49216), random.randint(0, FEATURES, 49216), [1 / 18], (NODES, FEATURES))
    support, features = tf.sparse_placeholder(tf.float32), tf.sparse_placeholder(tf.float32)
    labels, mask = tf.placeholder(tf.float32, [None, CLASSES]), tf.placeholder(tf.int32)
    w = Weights(tf)
    first, second = w(FEATURES, HIDDEN), w(HIDDEN, CLASSES)
    hidden = tf.nn.relu(tf.sparse_tensor_dense_matmul(support, tf.sparse_tensor_dense_matmul(features, first)))
    logits = tf.sparse_tensor_dense_matmul(support, tf.matmul(hidden, second))
    losses = tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=labels)
    weights = tf.cast(mask, tf.float32)
    loss = tf.reduce_mean(losses * weights / tf.reduce_mean(weights)) + 5e-4 * tf.nn.l2_loss(first)
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    session = ready(tf, open_session)
    feed = {
        support: graph,
        features: known,
        labels: np.eye(CLASSES, dtype=np.float32)[random.randint(0, CLASSES, NODES)],
        mask: (np.arange(NODES) < 140).astype(np.int32),
    }
    return Case(lambda: session.run([train, loss], feed), lambda: [session.run(loss, feed)])


def facenet(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    """Embeddings of two faces by an Inception-ResNet v1, as davidsandberg/facenet's, with one block of each kind."""
    import numpy as np

    w = Weights(tf)
    relu = tf.nn.relu

    def conv(
        x: Any, outputs: int, size: Any, stride: int = 1, padding: str = "SAME", after: Any = relu, norm: bool = True
    ) -> Any:
        high, wide = (size, size) if isinstance(size, int) else size
        y = tf.nn.conv2d(x, w(high, wide, int(x.shape[-1]), outputs), [1, stride, stride, 1], padding)
        if norm:
            rest = [tf.Variable(tf.fill([outputs], value)) for value in (0.0, 0.0, 1.0)]
            y = tf.nn.fused_batch_norm(y, tf.ones([outputs]), *rest, epsilon=0.001, is_training=False)[0]
        else:
            y = tf.nn.bias_add(y, tf.Variable(tf.zeros([outputs])))
        return y if after is None else after(y)

    def pooled(x: Any) -> Any:
        return tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "VALID")

    def block(x: Any, parts: list[Any], scale: float) -> Any:
        up = conv(tf.concat(parts, 3), int(x.shape[-1]), 1, after=None, norm=False)
        return relu(x + scale * up)

    def block35(x: Any) -> Any:
        one, two = conv(conv(x, 32, 1), 32, 3), conv(conv(conv(x, 32, 1), 32, 3), 32, 3)
        return block(x, [conv(x, 32, 1), one, two], 0.17)

    def block17(x: Any) -> Any:
        return block(x, [conv(x, 128, 1), conv(conv(conv(x, 128, 1), 128, (1, 7)), 128, (7, 1))], 0.1)

    def block8(x: Any) -> Any:
        return block(x, [conv(x, 192, 1), conv(conv(conv(x, 192, 1), 192, (1, 3)), 192, (3, 1))], 0.2)

    images = tf.placeholder(tf.float32, [None, SIDE, SIDE, 3])
    x = conv(conv(conv(images, 32, 3, 2, "VALID"), 32, 3, 1, "VALID"), 64, 3)
    x = conv(conv(conv(pooled(x), 80, 1, 1, "VALID"), 192, 3, 1, "VALID"), 256, 3, 2, "VALID")
    x = block35(x)
    three = conv(conv(conv(x, 192, 1), 192, 3), 256, 3, 2, "VALID")
    x = block17(tf.concat([conv(x, 384, 3, 2, "VALID"), three, pooled(x)], 3))
    parts = [conv(conv(x, 256, 1), count, 3, 2, "VALID") for count in (384, 256)]
    parts.append(conv(conv(conv(x, 256, 1), 256, 3), 256, 3, 2, "VALID"))
    x = block8(tf.concat([*parts, pooled(x)], 3))
    x = tf.reduce_mean(x, [1, 2])
    embeddings = tf.nn.l2_normalize(tf.matmul(x, w(int(x.shape[-1]), 128)), 1, 1e-10)
    session = ready(tf, open_session)
    feed = {images: np.random.RandomState(1).normal(size=(2, SIDE, SIDE, 3)).astype(np.float32)}
    return Case(lambda: session.run(embeddings, feed), lambda: [session.run(embeddings, feed)])


PROGRAMS = (
    program("bert", f"forward, {DEPTH} layers of {WIDTH}, {BATCH} texts of {LENGTH} words", bert(False)),
    program("bert_training", "the same, gradients clipped, Adam", bert(True)),
    program("gcn", f"training step, {NODES} nodes of {FEATURES} sparse features, {HIDDEN} hidden", gcn),
    program("facenet", f"embeddings of two images of {SIDE} by {SIDE}", facenet),
)

if __name__ == "__main__":
    sys.exit(benchmark_main("peoples_networks", PROGRAMS))
