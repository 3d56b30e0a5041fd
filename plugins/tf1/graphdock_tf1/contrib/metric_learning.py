"""Losses of embeddings ``[batch, size]`` by their labels, int32 ``[batch]``; each returns a scalar."""

from __future__ import annotations

from collections.abc import Sequence
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
    labels: TensorLike,
    embeddings_anchor: TensorLike,
    embeddings_positive: TensorLike,
    reg_lambda: float = 0.002,
    print_losses: bool = False,
) -> _tf.Tensor:
    """Cross entropy of the products of anchors and positives with equal labels, and ``reg_lambda`` of their norms (Sohn, 2016).

    Args:
      print_losses: print both parts to stderr in each step.
    """
    return _npairs(_alike(labels), embeddings_anchor, embeddings_positive, reg_lambda, print_losses)


def npairs_loss_multilabel(
    sparse_labels: Sequence[Any],
    embeddings_anchor: TensorLike,
    embeddings_positive: TensorLike,
    reg_lambda: float = 0.002,
    print_losses: bool = False,
) -> _tf.Tensor:
    """:func:`npairs_loss` of examples with several labels each: a pair counts as often as it has labels in common.

    Args:
      sparse_labels: a SparseTensor of bools ``[classes]`` per example.

    Raises:
      TypeError: one is none.
    """
    if not all(isinstance(each, _tf.SparseTensor) for each in sparse_labels):
        raise TypeError(f"sparse_labels must be a list of SparseTensors, but got {sparse_labels}")
    each = _tf.stack([_tf.sparse.to_dense(_tf.cast(labels, _tf.float32)) for labels in sparse_labels])
    common = _tf.matmul(each, each, transpose_b=True)
    return _npairs(common, embeddings_anchor, embeddings_positive, reg_lambda, print_losses)


def _npairs(common: Any, anchors: TensorLike, positives: TensorLike, reg_lambda: float, print_losses: bool) -> Any:
    anchor, positive = _tf.convert_to_tensor(anchors), _tf.convert_to_tensor(positives)
    norms = _tf.reduce_mean(_tf.reduce_sum(_tf.square(anchor), 1)) + _tf.reduce_mean(
        _tf.reduce_sum(_tf.square(positive), 1)
    )
    wanted = _tf.cast(common, anchor.dtype)
    wanted /= _tf.reduce_sum(wanted, 1, keepdims=True)
    logits = _tf.matmul(anchor, positive, transpose_b=True)
    entropy = _tf.reduce_mean(_tf.nn.softmax_cross_entropy_with_logits_v2(labels=wanted, logits=logits))
    norms *= 0.25 * reg_lambda
    if print_losses:
        entropy = _tf.Print(entropy, ["cross entropy:", entropy, "l2loss:", norms])
    return _tf.add(entropy, norms, name="npairs_loss")


def lifted_struct_loss(labels: TensorLike, embeddings: TensorLike, margin: float = 1.0) -> _tf.Tensor:
    """The loss of all pairs of one label against the negatives of both ends (Song et al., 2016): a soft maximum over these."""
    embeddings = _tf.convert_to_tensor(embeddings)
    apart = distances(embeddings)
    alike = _alike(labels)
    other = _tf.cast(_tf.logical_not(alike), apart.dtype)
    lack = margin - apart
    least = _tf.reduce_min(lack, 1, keepdims=True)
    most = _tf.reduce_max((lack - least) * other, 1, keepdims=True) + least
    shift = _tf.maximum(most, _tf.transpose(most))
    # axes: one end, the other end, negative of the first
    of_one = _tf.exp(_tf.expand_dims(lack, 1) - _tf.expand_dims(shift, 2)) * _tf.expand_dims(other, 1)
    of_one = _tf.reduce_sum(of_one, 2)
    found = shift + _tf.log(of_one + _tf.transpose(of_one)) + apart
    pairs = _tf.cast(alike, apart.dtype) - _tf.eye(_tf.shape(apart)[0], dtype=apart.dtype)
    total = _tf.reduce_sum(_tf.square(_tf.maximum(found * pairs, 0.0)))
    return _tf.divide(0.25 * total, _tf.reduce_sum(pairs) / 2.0, name="liftedstruct_loss")


def distances(embeddings: Any) -> Any:
    """Euclidean distances ``[batch, batch]``; the gradient of one that is 0 is 0."""
    squares = _squared_distances(embeddings)
    none = _tf.less_equal(squares, 0.0)
    return _tf.where(none, _tf.zeros_like(squares), _tf.sqrt(_tf.where(none, _tf.ones_like(squares), squares)))
