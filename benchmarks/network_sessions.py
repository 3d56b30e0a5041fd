"""The networks of examples/ as graphs of a given size, with data and weights from a fixed seed.

A program of examples/ says ``import graphdock as tf``. Under TensorFlow :func:`example` gives it TensorFlow by that name: what is
measured and compared is one text.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["DATA", "Graph", "build", "example", "initial_value"]


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


def _image_data(size: int) -> Callable[..., list[np.ndarray]]:
    def data(batch: int, classes: int = 1000, dtype: str = "float32", **_: Any) -> list[np.ndarray]:
        random = _random()
        return [random.standard_normal((batch, size, size, 3)).astype(dtype), _labels(random, classes, batch)]

    return data


def _digits_data(batch: int, **_: Any) -> list[np.ndarray]:
    random = _random()
    return [random.uniform(size=(batch, 8, 8, 1)).astype(np.float32), _labels(random, 10, batch)]


def _mlp_data(batch: int, inputs: int, **_: Any) -> list[np.ndarray]:
    random = _random()
    return [random.standard_normal((batch, inputs)).astype(np.float32), _labels(random, 10, batch)]


def _dcgan_data(batch: int, **_: Any) -> list[np.ndarray]:
    return [_digits_data(batch)[0], _random().standard_normal((batch, 32)).astype(np.float32)]


def _masked_data(batch: int, length: int, vocabulary: int, **_: Any) -> list[np.ndarray]:
    random = _random()
    gaps = random.uniform(size=(batch, length)) < 0.15
    whole = _labels(random, vocabulary, batch, length)
    return [np.where(gaps, 0, whole).astype(np.int32), whole, gaps.astype(np.float32)]


def _token_data(batch: int, length: int, vocabulary: int, **_: Any) -> list[np.ndarray]:
    return [_labels(_random(), vocabulary, batch, length)]


def _window_data(batch: int, length: int, vocabulary: int, **_: Any) -> list[np.ndarray]:
    return [_labels(_random(), vocabulary, batch, length + 1)]


def _rating_data(batch: int, users: int, things: int, **_: Any) -> list[np.ndarray]:
    random = _random()
    ids = [_labels(random, users, batch), _labels(random, things, batch)]
    return [*ids, random.standard_normal(batch).astype(np.float32)]


def _drawn(random: np.random.RandomState, sampled: int, vocabulary: int, *true: int) -> list[np.ndarray]:
    """Return what a candidate sampler could have returned: classes that differ, and how often true and sampled ones are
    expected.
    """
    classes = random.permutation(vocabulary)[:sampled].astype(np.int64)
    return [classes, *(random.uniform(0.1, 0.9, size=shape).astype(np.float32) for shape in ((*true, 1), (sampled,)))]


def _word_data(batch: int, steps: int, vocabulary: int, sampled: int = 0, **_: Any) -> list[np.ndarray]:
    random = _random()
    words = [_labels(random, vocabulary, batch, steps), _labels(random, vocabulary, batch, steps)]
    return words + (_drawn(random, sampled, vocabulary, batch * steps) if sampled else [])


def _pair_data(batch: int, vocabulary: int, sampled: int, **_: Any) -> list[np.ndarray]:
    random = _random()
    words = [_labels(random, vocabulary, batch), _labels(random, vocabulary, batch, 1)]
    return words + _drawn(random, sampled, vocabulary, batch)


def _backwards_data(batch: int, length: int, vocabulary: int, **_: Any) -> list[np.ndarray]:
    random = _random()
    lengths = 1 + random.permutation(length)[:batch].astype(np.int32)
    return [
        _labels(random, vocabulary, batch, length),
        lengths,
        _labels(random, vocabulary, batch, length + 1),
    ]


def _tree_data(**_: Any) -> list[np.ndarray]:
    """A tree of 6 leaves, whose root is node 12, one of a leaf alone, and a leaf of no tree."""
    owners, ends = [0, 0, 0, 0, 0, 1, 2, 0], [0, 2, 4, 5]
    words, left, right = [3, 1, 0, 4, 2, 1, 0, 5], [0, 3, 8, 9, 10], [1, 4, 2, 7, 11]
    return [np.array(each, np.int32) for each in (words, owners, left, right, ends, [12, 5], [1, 0])]


#: Name -> sizes to what the network is fed.
DATA: dict[str, Callable[..., list[np.ndarray]]] = {
    "alexnet": _image_data(227),
    "overfeat": _image_data(231),
    "vgg": _image_data(224),
    "googlenet": _image_data(224),
    "inception_v3": _image_data(299),
    "digits_cnn": _digits_data,
    "mlp": _mlp_data,
    "dcgan": _dcgan_data,
    "transformer": _masked_data,
    "minilm": _token_data,
    "gpt": _window_data,
    "sharded_embedding": _rating_data,
    "seq2seq": _backwards_data,
    "tree_lstm": _tree_data,
    "lstm_lm": _word_data,
    "word2vec": _pair_data,
}

# Each takes the module, the placeholders of what it is fed, and sizes, and returns its losses.


def _on_images(name: str) -> Callable[..., list[Any]]:
    def build(tf: ModuleType, images: Any, labels: Any, *, narrow: int = 1, classes: int = 1000, **_: Any) -> list[Any]:
        logits = example(tf, name).inference(images, classes, narrow)
        return [example(tf, "convnet").loss_of(logits, labels)]

    return build


def _digits_cnn(tf: ModuleType, images: Any, labels: Any, *, width: int, **_: Any) -> list[Any]:
    logits = example(tf, "digits_cnn").inference(images, None, width)
    return [example(tf, "convnet").loss_of(logits, labels)]


def _mlp(tf: ModuleType, x: Any, labels: Any, *, hidden: int, **_: Any) -> list[Any]:
    return [example(tf, "convnet").loss_of(example(tf, "mlp").inference(x, [hidden, hidden], 10), labels)]


def _dcgan(tf: ModuleType, images: Any, noise: Any, *, width: int, **_: Any) -> list[Any]:
    return list(example(tf, "dcgan").losses(images, noise, width))


def _transformer(
    tf: ModuleType, tokens: Any, targets: Any, weights: Any, *, vocabulary: int, **sizes: Any
) -> list[Any]:
    net = example(tf, "transformer")
    x = net.encode(tokens, vocabulary, sizes["width"], sizes["heads"], sizes["layers"])
    with tf.variable_scope("head"):
        return [net.loss_of(x, targets, weights, vocabulary)]


def _minilm(
    tf: ModuleType, tokens: Any, *, vocabulary: int, width: int, heads: int, layers: int, **_: Any
) -> list[Any]:
    return [example(tf, "transformer").encode(tokens, vocabulary, width, heads, layers)]


def _gpt(tf: ModuleType, window: Any, *, vocabulary: int, width: int, heads: int, layers: int, **_: Any) -> list[Any]:
    net = example(tf, "gpt")
    with tf.variable_scope("gpt"):
        return [net.loss_of(net.decode(window[:, :-1], vocabulary, width, heads, layers), window[:, 1:])]


def _sharded_embedding(tf: ModuleType, user: Any, thing: Any, given: Any, **sizes: Any) -> list[Any]:
    net, rows = example(tf, "sharded_embedding"), (sizes["users"], sizes["things"])
    return [net.loss_of(net.inference(user, thing, rows, sizes["width"], sizes["shards"], sizes["strategy"]), given)]


def _seq2seq(
    tf: ModuleType, source: Any, lengths: Any, target: Any, *, vocabulary: int, units: int, **_: Any
) -> list[Any]:
    return [example(tf, "seq2seq").Translator(source, lengths, vocabulary, units).loss_of(target, lengths + 1)]


def _tree_lstm(tf: ModuleType, *fed: Any, vocabulary: int, width: int, units: int, **_: Any) -> list[Any]:
    net = example(tf, "tree_lstm")
    *arrays, labels = fed
    nodes = net.Forest(*arrays)
    both = [net.inference(nodes, vocabulary, width, units), net.bag_of_words(nodes, vocabulary)]
    return [net.loss_of(logits, labels) for logits in both]


def _lstm_lm(
    tf: ModuleType, words: Any, targets: Any, *drawn: Any, vocabulary: int, units: int, layers: int, **more: Any
) -> list[Any]:
    net = example(tf, "lstm_lm")
    known, _ = net.inference(words, vocabulary, units, layers, unrolled=more.get("unrolled", False))
    return [net.loss_of(known, targets, vocabulary, more.get("sampled", 0), drawn or None)]


def _word2vec(
    tf: ModuleType, words: Any, near: Any, *drawn: Any, vocabulary: int, width: int, sampled: int, **_: Any
) -> list[Any]:
    net = example(tf, "word2vec")
    return [net.loss_of(net.vectors(vocabulary, width), words, near, vocabulary, sampled, drawn)]


_BUILDERS: dict[str, Callable[..., list[Any]]] = {
    **{name: _on_images(name) for name in ("alexnet", "overfeat", "vgg", "googlenet", "inception_v3")},
    "digits_cnn": _digits_cnn,
    "mlp": _mlp,
    "dcgan": _dcgan,
    "transformer": _transformer,
    "minilm": _minilm,
    "gpt": _gpt,
    "sharded_embedding": _sharded_embedding,
    "seq2seq": _seq2seq,
    "tree_lstm": _tree_lstm,
    "lstm_lm": _lstm_lm,
    "word2vec": _word2vec,
}


def build(tf: ModuleType, network: str, sizes: Mapping[str, Any], dtype: str | None = None) -> Graph:
    """The network in the default graph. minilm's only "loss" is its output [batch, length, width].

    dtype: what it is computed in, where that isn't float32; variables, what is fed and losses are float32 all the same.
    """
    arrays = DATA[network](**sizes)
    fed = [tf.placeholder(tf.as_dtype(array.dtype), array.shape) for array in arrays]
    feed = dict(zip(fed, arrays, strict=True))
    if dtype is None:
        return Graph(_BUILDERS[network](tf, *fed, **sizes), feed)

    def cast(x: Any) -> Any:
        return tf.cast(x, dtype) if x.dtype.base_dtype == tf.float32 else x

    def kept_wide(getter: Callable[..., Any], name: str, *args: Any, **more: Any) -> Any:
        return cast(getter(name, *args, **(more | {"dtype": tf.float32})))

    with tf.variable_scope(tf.get_variable_scope(), custom_getter=kept_wide):
        losses = _BUILDERS[network](tf, *map(cast, fed), **sizes)
    return Graph([tf.cast(loss, tf.float32) for loss in losses], feed)
