"""A tree-LSTM that reads parse trees, each of another structure, in one graph.

Tai, Socher and Manning, "Improved semantic representations from tree-structured long short-term memory networks", 2015: the
binary network, over constituency trees. A sentence is good or bad by its structure: "not (A but B)" says something else than
"(not A) but B", of the same words in the same order, so that no bag of words can tell. A little grammar makes the sentences.

The structure is data. A batch of trees is one forest, whose nodes are numbered: the leaves first, then level by level, those whose
children are leaves, and so on. Per inner node there are the numbers of its two children, and a loop computes a level at once, from
a table of states that it makes longer. The graph does not know the trees, and their arrays have few lengths: so do plans.

    python -m examples.tree_lstm --depth 5
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import graphdock as tf
import numpy as np

from examples.training import Training, command_line, session, train

GOOD, BAD = ("good", "great", "fine"), ("bad", "poor", "awful")
WORDS = (*GOOD, *BAD, "not", "but", "though")


class Forest(NamedTuple):
    """Trees as arrays, int32, each as long as the next power of two.

    words: of each leaf [leaves], in the order of the trees. owners: the tree of each leaf [leaves], or their number if it has none.
    left, right: the children of each inner node [inner]; the leaves are node 0 and so on, the inner nodes follow.
    levels: [height + 1]; the inner nodes levels[n] to levels[n + 1] have children of lower levels only.
    roots: the node of each whole tree [trees].
    """

    words: Any
    owners: Any
    left: Any
    right: Any
    levels: Any
    roots: Any


def sentence(random: np.random.RandomState, depth: int) -> tuple[Any, bool]:
    """A parse tree, a word or a pair of trees, of so many rules at most on one another; and whether what it says is good."""
    rule = random.randint(4) if depth else 0
    if rule == 0:
        good = bool(random.randint(2))
        return (GOOD if good else BAD)[random.randint(3)], good
    first, good = sentence(random, depth - 1)
    if rule == 1:
        return ("not", first), not good
    second, other = sentence(random, depth - 1)
    if rule == 2:
        return (first, ("but", second)), other
    return (first, ("though", second)), good


def forest(trees: Sequence[Any]) -> Forest:
    """The trees as numbered nodes."""
    words: list[int] = []
    owners: list[int] = []
    inner: list[list[tuple[Any, Any]]] = []  # per level: pairs of children, each (level, place in it)

    def visit(tree: Any, owner: int) -> tuple[int, int]:
        if isinstance(tree, str):
            words.append(WORDS.index(tree))
            owners.append(owner)
            return 0, len(words) - 1
        children = visit(tree[0], owner), visit(tree[1], owner)
        level = 1 + max(child[0] for child in children)
        while len(inner) < level:
            inner.append([])
        inner[level - 1].append(children)
        return level, len(inner[level - 1]) - 1

    roots = [visit(tree, owner) for owner, tree in enumerate(trees)]
    levels = np.cumsum([0, *map(len, inner)])
    leaves = _padded(words, 0)
    first = [0, *(len(leaves) + levels[:-1])]
    pairs = [[first[level] + place for level, place in pair] for pairs in inner for pair in pairs]
    left, right = np.reshape(pairs, [-1, 2]).T
    return Forest(
        leaves,
        _padded(owners, len(trees)),
        _padded(left, 0),
        _padded(right, 0),
        _padded(levels, levels[-1]),  # levels without nodes
        np.array([first[level] + place for level, place in roots], np.int32),
    )


def _padded(values: Any, last: int) -> np.ndarray:
    """The values, and ``last`` as often as a power of two needs."""
    size = 1 << max(0, len(values) - 1).bit_length()
    return np.pad(np.asarray(values, np.int32), [(0, size - len(values))], constant_values=last)


def encode(nodes: Forest, vocabulary: int, width: int, units: int) -> Any:
    """The outputs [nodes, units] of all nodes of a forest."""
    table = tf.get_variable("embedding", [vocabulary, width], initializer=tf.random_normal_initializer(stddev=0.5))
    with tf.variable_scope("leaf"):
        kernel, bias = tf.get_variable("kernel", [width, 3 * units]), tf.get_variable("bias", [3 * units])
        gates = tf.nn.bias_add(tf.matmul(tf.nn.embedding_lookup(table, nodes.words), kernel), bias)
        i, o, u = tf.split(gates, 3, 1)
        c = tf.sigmoid(i) * tf.tanh(u)
        leaves = tf.concat([c, tf.sigmoid(o) * tf.tanh(c)], 1)
    with tf.variable_scope("inner"):
        kernel, bias = tf.get_variable("kernel", [2 * units, 5 * units]), tf.get_variable("bias", [5 * units])

    def level(number: Any, states: Any) -> Any:
        """The states of one level more, of those of all levels below."""
        first, last = nodes.levels[number], nodes.levels[number + 1]
        c1, h1 = tf.split(tf.gather(states, nodes.left[first:last]), 2, 1)
        c2, h2 = tf.split(tf.gather(states, nodes.right[first:last]), 2, 1)
        gates = tf.nn.bias_add(tf.matmul(tf.concat([h1, h2], 1), kernel), bias)
        i, f1, f2, o, u = tf.split(gates, 5, 1)
        c = tf.sigmoid(i) * tf.tanh(u) + tf.sigmoid(f1 + 1.0) * c1 + tf.sigmoid(f2 + 1.0) * c2
        made = tf.concat([c, tf.sigmoid(o) * tf.tanh(c)], 1)
        return number + 1, tf.concat([states, made], 0)

    height = tf.shape(nodes.levels)[0] - 1
    invariants = [tf.TensorShape([]), tf.TensorShape([None, 2 * units])]
    _, states = tf.while_loop(lambda n, _: n < height, level, [tf.constant(0), leaves], shape_invariants=invariants)
    return states[:, units:]


def inference(nodes: Forest, vocabulary: int, width: int, units: int) -> Any:
    """Logits [trees, 2] of a forest."""
    roots = tf.gather(encode(nodes, vocabulary, width, units), nodes.roots)
    with tf.variable_scope("logits"):
        return tf.nn.bias_add(tf.matmul(roots, tf.get_variable("kernel", [units, 2])), tf.get_variable("bias", [2]))


def bag_of_words(nodes: Forest, vocabulary: int) -> Any:
    """Logits [trees, 2] of a model that sees how often each word is in a sentence, and nothing of the structure."""
    with tf.variable_scope("bag"):
        table = tf.get_variable("words", [vocabulary, 2])
        counts = tf.unsorted_segment_sum(
            tf.nn.embedding_lookup(table, nodes.words), nodes.owners, tf.shape(nodes.roots)[0] + 1
        )
        return counts[:-1]


def loss_of(logits: Any, labels: Any) -> Any:
    """Mean cross-entropy of logits [trees, 2] and labels [trees]."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def placeholders() -> Forest:
    """A forest that is fed, of any structure."""
    return Forest(*[tf.placeholder(tf.int32, [None], name=name) for name in Forest._fields])


def main(arguments: list[str] | None = None) -> Training:
    """Train on sentences as they come, and measure both models on others, which are longer."""
    options = command_line(
        __doc__,
        arguments,
        steps=400,
        batch=32,
        depth=(4, "rules on one another in a sentence"),
        width=(16, "of a word"),
        units=(32, "of a state"),
        rate=(0.005, "learning rate"),
    )
    random = np.random.RandomState(options.seed)
    with tf.Graph().as_default():
        tf.set_random_seed(options.seed)
        nodes, labels = placeholders(), tf.placeholder(tf.int32, [None], name="labels")
        both = [inference(nodes, len(WORDS), options.width, options.units), bag_of_words(nodes, len(WORDS))]
        losses = [loss_of(logits, labels) for logits in both]
        right = [tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.float32)) for logits in both]
        step = tf.train.AdamOptimizer(options.rate).minimize(tf.add_n(losses))

        def sentences(count: int, depth: int) -> dict[Any, Any]:
            trees, good = zip(*[sentence(random, depth) for _ in range(count)], strict=True)
            return {**dict(zip(nodes, forest(trees), strict=True)), labels: np.array(good, np.int32)}

        with session(options) as sess:

            def measure() -> dict[str, float]:
                found = sess.run(right, sentences(1000, options.depth + 1))
                return dict(zip(("accuracy on longer sentences", "accuracy of a bag of words"), found, strict=True))

            return train(sess, options, step, losses[0], lambda _: sentences(options.batch, options.depth), measure)


if __name__ == "__main__":
    main()
