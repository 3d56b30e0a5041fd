"""Losses of embeddings ``[batch, size]`` by their labels, int32 ``[batch]``; each returns a scalar."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock.typing import TensorLike


def contrastive_loss(
    labels: TensorLike, embeddings_anchor: TensorLike, embeddings_positive: TensorLike, margin: float = 1.0
) -> _tf.Tensor:
    """The mean of squared distances of pairs with label 1, and of what others lack to ``margin`` (Hadsell et al., 2006)."""
    apart = _tf.sqrt(_tf.reduce_sum(_tf.squared_difference(embeddings_anchor, embeddings_positive), 1))
    alike = _tf.cast(labels, apart.dtype)
    return _tf.reduce_mean(
        alike * _tf.square(apart) + (1.0 - alike) * _tf.square(_tf.maximum(margin - apart, 0.0)),
        name="contrastive_loss",
    )


def _alike(labels: TensorLike) -> Any:
    column = _tf.reshape(_tf.convert_to_tensor(labels), [-1, 1])
    return _tf.equal(column, _tf.transpose(column))


def _squared_distances(embeddings: Any) -> Any:
    norms = _tf.reduce_sum(_tf.square(embeddings), 1, keepdims=True)
    found = norms + _tf.transpose(norms) - 2.0 * _tf.matmul(embeddings, embeddings, transpose_b=True)
    return _tf.maximum(found, 0.0) * (1.0 - _tf.eye(_tf.shape(embeddings)[0], dtype=found.dtype))


def triplet_semihard_loss(labels: TensorLike, embeddings: TensorLike, margin: float = 1.0) -> _tf.Tensor:
    """The triplet loss with semi-hard negatives of FaceNet (Schroff et al., 2015).

    The negative of an anchor and another one with its label is the nearest that is farther than that; where none is, the farthest.
    """
    embeddings = _tf.convert_to_tensor(embeddings)
    far = _squared_distances(embeddings)
    alike = _alike(labels)
    other = _tf.logical_not(alike)
    # axes: anchor, positive, negative
    outside = _tf.expand_dims(other, 1) & (_tf.expand_dims(far, 1) > _tf.expand_dims(far, 2))
    most = _tf.reduce_max(far, 1, keepdims=True)
    wide = _tf.expand_dims(far, 1) + _tf.zeros_like(_tf.expand_dims(far, 2))
    nearest = _tf.reduce_min(_tf.where(outside, wide, _tf.expand_dims(most, 1) + _tf.zeros_like(wide)), 2)
    farthest = _tf.reduce_max(_tf.where(other, far, _tf.zeros_like(far)), 1, keepdims=True) + _tf.zeros_like(far)
    negative = _tf.where(_tf.reduce_any(outside, 2), nearest, farthest)
    pairs = _tf.cast(alike, far.dtype) - _tf.eye(_tf.shape(far)[0], dtype=far.dtype)
    total = _tf.reduce_sum(_tf.maximum((margin + far - negative) * pairs, 0.0))
    return _tf.divide(total, _tf.reduce_sum(pairs), name="triplet_semihard_loss")


def npairs_loss(
    labels: TensorLike, embeddings_anchor: TensorLike, embeddings_positive: TensorLike, reg_lambda: float = 0.002
) -> _tf.Tensor:
    """Cross entropy of the products of anchors and positives with equal labels, and ``reg_lambda`` of their norms (Sohn, 2016)."""
    anchor, positive = _tf.convert_to_tensor(embeddings_anchor), _tf.convert_to_tensor(embeddings_positive)
    norms = _tf.reduce_mean(_tf.reduce_sum(_tf.square(anchor), 1)) + _tf.reduce_mean(
        _tf.reduce_sum(_tf.square(positive), 1)
    )
    wanted = _tf.cast(_alike(labels), anchor.dtype)
    wanted /= _tf.reduce_sum(wanted, 1, keepdims=True)
    logits = _tf.matmul(anchor, positive, transpose_b=True)
    entropy = _tf.nn.softmax_cross_entropy_with_logits_v2(labels=wanted, logits=logits)
    return _tf.add(_tf.reduce_mean(entropy), 0.25 * reg_lambda * norms, name="npairs_loss")
