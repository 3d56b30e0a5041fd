"""The networks of examples/ as graphs of a given size, with data and weights from a fixed seed.

A program of examples/ says ``import graphdock as tf``. Under TensorFlow :func:`example` gives it TensorFlow by that name: what is
measured and compared is one text.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["NETWORKS", "Graph", "example", "initial_value"]


@dataclass(frozen=True)
class Graph:
    """losses: scalars, each of which has gradients; the only one is what a training step minimises. feed: arrays by placeholder."""

    losses: list[Any]
    feed: dict[Any, np.ndarray]


def example(tf: ModuleType, name: str) -> ModuleType:
    """``examples.<name>`` with ``tf`` for its graphdock. One framework per process."""
    if sys.modules.setdefault("graphdock", tf) is not tf:
        raise RuntimeError(f"this process has imported graphdock: it can't run examples.{name} under {tf.__name__}")
    return importlib.import_module(f"examples.{name}")


def initial_value(name: str, shape: Sequence[int], gain: float = 1.2) -> np.ndarray:
    """Weights of variance gain^2 / inputs, near one for scales and near zero for biases; the same for a name in every process."""
    random = np.random.RandomState(sum(ord(letter) * 31**place for place, letter in enumerate(name[:40])) % 2**32)
    noise = random.standard_normal(tuple(shape)).astype(np.float32)
    if len(shape) == 1:
        return noise * np.float32(0.1) + np.float32(name.rpartition("/")[2] in ("g", "gamma"))
    return noise * np.float32(gain / np.sqrt(np.prod(shape[:-1]) if len(shape) == 4 else shape[0]))


def _random() -> np.random.RandomState:
    return np.random.RandomState(7)


def _labels(random: np.random.RandomState, classes: int, *shape: int) -> np.ndarray:
    return random.randint(classes, size=shape).astype(np.int32)


def _placeholders(tf: ModuleType, *arrays: np.ndarray) -> list[Any]:
    return [tf.placeholder(tf.as_dtype(array.dtype), array.shape) for array in arrays]


def _on_images(name: str) -> Callable[..., Graph]:
    def build(tf: ModuleType, batch: int, narrow: int = 1, classes: int = 1000) -> Graph:
        net, random = example(tf, name), _random()
        noise = random.standard_normal((batch, net.SIZE, net.SIZE, 3)).astype(np.float32)
        arrays = noise, _labels(random, classes, batch)
        images, labels = fed = _placeholders(tf, *arrays)
        loss = example(tf, "convnet").loss_of(net.inference(images, classes, narrow), labels)
        return Graph([loss], dict(zip(fed, arrays, strict=True)))

    return build


def digits_cnn(tf: ModuleType, batch: int, width: int) -> Graph:
    random = _random()
    arrays = random.uniform(size=(batch, 8, 8, 1)).astype(np.float32), _labels(random, 10, batch)
    images, labels = fed = _placeholders(tf, *arrays)
    logits = example(tf, "digits_cnn").inference(images, None, width)
    return Graph([example(tf, "convnet").loss_of(logits, labels)], dict(zip(fed, arrays, strict=True)))


def mlp(tf: ModuleType, batch: int, inputs: int, hidden: int) -> Graph:
    random = _random()
    arrays = random.standard_normal((batch, inputs)).astype(np.float32), _labels(random, 10, batch)
    x, labels = fed = _placeholders(tf, *arrays)
    logits = example(tf, "mlp").inference(x, [hidden, hidden], 10)
    return Graph([example(tf, "convnet").loss_of(logits, labels)], dict(zip(fed, arrays, strict=True)))


def dcgan(tf: ModuleType, batch: int, width: int) -> Graph:
    random, net = _random(), example(tf, "dcgan")
    images = random.uniform(size=(batch, 8, 8, 1)).astype(np.float32)
    arrays = images, random.standard_normal((batch, net.NOISE)).astype(np.float32)
    fed = _placeholders(tf, *arrays)
    return Graph(list(net.losses(*fed, width)), dict(zip(fed, arrays, strict=True)))


def transformer(tf: ModuleType, batch: int, length: int, vocabulary: int, width: int, heads: int, layers: int) -> Graph:
    net = example(tf, "transformer")
    arrays = net.sequences(_random(), batch, length, vocabulary)
    tokens, targets, weights = fed = _placeholders(tf, *arrays)
    x = net.encode(tokens, vocabulary, width, heads, layers)
    with tf.variable_scope("head"):
        return Graph([net.loss_of(x, targets, weights, vocabulary)], dict(zip(fed, arrays, strict=True)))


def minilm(tf: ModuleType, batch: int, length: int, vocabulary: int, width: int, heads: int, layers: int) -> Graph:
    """The encoder alone: its "loss" is its output [batch, length, width]."""
    arrays = (_labels(_random(), vocabulary, batch, length),)
    (tokens,) = fed = _placeholders(tf, *arrays)
    x = example(tf, "transformer").encode(tokens, vocabulary, width, heads, layers)
    return Graph([x], dict(zip(fed, arrays, strict=True)))


def gpt(tf: ModuleType, batch: int, length: int, vocabulary: int, width: int, heads: int, layers: int) -> Graph:
    net = example(tf, "gpt")
    arrays = (_labels(_random(), vocabulary, batch, length + 1),)
    (window,) = fed = _placeholders(tf, *arrays)
    with tf.variable_scope("gpt"):
        loss = net.loss_of(net.decode(window[:, :-1], vocabulary, width, heads, layers), window[:, 1:])
    return Graph([loss], dict(zip(fed, arrays, strict=True)))


def sharded_embedding(
    tf: ModuleType, batch: int, users: int, things: int, width: int, shards: int, strategy: str
) -> Graph:
    random, net = _random(), example(tf, "sharded_embedding")
    ids = _labels(random, users, batch), _labels(random, things, batch)
    arrays = *ids, random.standard_normal(batch).astype(np.float32)
    fed = _placeholders(tf, *arrays)
    ratings = net.inference(fed[0], fed[1], (users, things), width, shards, strategy)
    return Graph([net.loss_of(ratings, fed[2])], dict(zip(fed, arrays, strict=True)))


def lstm_lm(tf: ModuleType, batch: int, steps: int, vocabulary: int, units: int, layers: int) -> Graph:
    """A language model of LSTMs, each step of time in the graph by itself."""
    random = _random()
    arrays = _labels(random, vocabulary, batch, steps), _labels(random, vocabulary, batch, steps)
    words, targets = fed = _placeholders(tf, *arrays)
    table = tf.get_variable("words", [vocabulary, units])
    inputs = tf.unstack(tf.nn.embedding_lookup(table, words), axis=1)
    for layer in range(layers):
        kernel = tf.get_variable(f"lstm{layer}/kernel", [2 * units, 4 * units])
        bias = tf.get_variable(f"lstm{layer}/bias", [4 * units])
        c = h = tf.zeros([batch, units])
        for step in range(steps):
            gates = tf.nn.bias_add(tf.matmul(tf.concat([inputs[step], h], 1), kernel), bias)
            i, j, f, o = tf.split(gates, 4, 1)
            c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)
            h = inputs[step] = tf.tanh(c) * tf.sigmoid(o)
    w = tf.get_variable("softmax/w", [units, vocabulary])
    logits = tf.nn.bias_add(tf.matmul(tf.concat(inputs, 0), w), tf.get_variable("softmax/b", [vocabulary]))
    labels = tf.reshape(tf.transpose(targets), [-1])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    return Graph([loss], dict(zip(fed, arrays, strict=True)))


#: Name -> (tf, **sizes) to the graph, in the default graph.
NETWORKS: dict[str, Callable[..., Graph]] = {
    **{name: _on_images(name) for name in ("alexnet", "overfeat", "vgg", "googlenet")},
    **{
        build.__name__: build
        for build in (digits_cnn, mlp, dcgan, transformer, minilm, gpt, sharded_embedding, lstm_lm)
    },
}
