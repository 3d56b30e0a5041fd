"""The layers of a transformer, as the encoder and the decoder of the examples have them.

Activations are [batch, length, width]; attention weights [batch, heads, length, length].
"""

from __future__ import annotations

from typing import Any

import graphdock as tf

__all__ = ["attention", "dense", "embedding", "gelu", "gelu_tanh", "norm"]

_NORMAL = tf.random_normal_initializer(stddev=0.02)


def dense(x: Any, outputs: int, name: str) -> Any:
    """The same affine map at every position."""
    batch, length, inputs = (int(size) for size in x.shape)
    with tf.variable_scope(name):
        w = tf.get_variable("w", [inputs, outputs], initializer=_NORMAL)
        b = tf.get_variable("b", [outputs], initializer=tf.zeros_initializer())
        y = tf.nn.bias_add(tf.matmul(tf.reshape(x, [-1, inputs]), w), b)
        return tf.reshape(y, [batch, length, outputs])


def norm(x: Any, name: str) -> Any:
    """Layer normalisation of the last axis."""
    width = int(x.shape[-1])
    with tf.variable_scope(name):
        g = tf.get_variable("g", [width], initializer=tf.ones_initializer())
        b = tf.get_variable("b", [width], initializer=tf.zeros_initializer())
        mean = tf.reduce_mean(x, axis=-1, keepdims=True)
        variance = tf.reduce_mean(tf.square(x - mean), axis=-1, keepdims=True)
        return (x - mean) * tf.rsqrt(variance + 1e-5) * g + b


def gelu(x: Any) -> Any:
    """Gaussian error linear unit, by the error function."""
    return 0.5 * x * (1.0 + tf.erf(x * 0.7071067811865476))


def gelu_tanh(x: Any) -> Any:
    """The same, approximated."""
    return 0.5 * x * (1.0 + tf.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def embedding(tokens: Any, vocabulary: int, width: int) -> tuple[Any, Any]:
    """Vectors of tokens [batch, length] and their positions, summed; and the table [vocabulary, width]."""
    length = int(tokens.shape[1])
    table = tf.get_variable("tokens", [vocabulary, width], initializer=_NORMAL)
    places = tf.get_variable("positions", [length, width], initializer=_NORMAL)
    return tf.nn.embedding_lookup(table, tokens) + places, table


def attention(x: Any, heads: int, name: str, causal: bool = False) -> Any:
    """Every position looks at all, or with ``causal`` at itself and those before."""
    batch, length, width = (int(size) for size in x.shape)
    size = width // heads
    with tf.variable_scope(name):
        parts = tf.reshape(dense(x, 3 * width, "qkv"), [batch, length, 3, heads, size])
        q, k, v = tf.unstack(tf.transpose(parts, [2, 0, 3, 1, 4]))
        scores = tf.matmul(q * size**-0.5, k, transpose_b=True)
        if causal:
            seen = tf.matrix_band_part(tf.ones([length, length]), -1, 0)
            scores = scores * seen - 1e9 * (1.0 - seen)
        y = tf.matmul(tf.nn.softmax(scores), v)
        y = tf.reshape(tf.transpose(y, [0, 2, 1, 3]), [batch, length, width])
        return dense(y, width, "out")
