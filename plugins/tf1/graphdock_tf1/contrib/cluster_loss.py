"""The clustering loss of ``tf.contrib.losses.metric_learning`` (Song et al., 2017, https://arxiv.org/abs/1612.01213)."""

from __future__ import annotations

from collections.abc import Callable

import graphdock as _tf
import numpy as np
from graphdock.typing import TensorLike

from graphdock_tf1.contrib.metric_learning import distances

#: Margin -> the score of scikit-learn that it is made of; None: 1 where the labels are the same.
_SCORES = {
    "nmi": "normalized_mutual_info_score",
    "ami": "adjusted_mutual_info_score",
    "ari": "adjusted_rand_score",
    "vmeasure": "v_measure_score",
    "const": None,
}
#: Rounds of the local search.
_ROUNDS = 5
_Score = Callable[[np.ndarray, np.ndarray], float]


def cluster_loss(
    labels: TensorLike,
    embeddings: TensorLike,
    margin_multiplier: float,
    enable_pam_finetuning: bool = True,
    margin_type: str = "nmi",
    print_losses: bool = False,
) -> _tf.Tensor:
    """Travel to the best centroids under a margin, less the travel to those of the labels; at least 0. A scalar.

    Args:
      labels: integers ``[batch]`` or ``[batch, 1]``. embeddings: ``[batch, size]``, of length 1.
      margin_multiplier: of the margin, which is 1 less how well centroids and labels agree.
      enable_pam_finetuning: whether a local search betters the centroids.
      margin_type: how agreement is told: ``nmi``, ``ami``, ``ari``, ``vmeasure`` or ``const``.
      print_losses: print the loss to stderr in each step.

    Raises:
      ValueError: no such margin. ImportError: scikit-learn is not installed.
    """
    if margin_type not in _SCORES:
        raise ValueError(f"Unrecognized margin_type: {margin_type}")
    score = _score(margin_type)
    labels, apart = _tf.reshape(labels, [-1]), distances(_tf.convert_to_tensor(embeddings))

    def search(apart: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.float32]:
        chosen = _centroids(apart, labels, margin_multiplier, score)
        if enable_pam_finetuning:
            chosen = _bettered(apart, labels, chosen, margin_multiplier, score)
        own = [members[np.argmin(apart[np.ix_(members, members)].sum(0))] for members in _members(labels)]
        return chosen.astype(np.int32), np.array(own, np.int32), np.float32(score(labels, _nearest(apart, chosen)))

    chosen, own, agreement = _tf.py_func(search, [apart, labels], [_tf.int32, _tf.int32, _tf.float32])
    travel = -_tf.reduce_sum(_tf.reduce_min(_tf.gather(apart, chosen), 0))
    to_own = _tf.equal(_tf.expand_dims(_tf.gather(labels, own), 1), _tf.expand_dims(labels, 0))
    known = -_tf.reduce_sum(_tf.where(to_own, _tf.gather(apart, own), _tf.zeros_like(_tf.gather(apart, own))))
    loss = _tf.maximum(travel + margin_multiplier * (1.0 - agreement) - known, 0.0, name="clustering_loss")
    loss.set_shape([])
    if print_losses:
        loss = _tf.Print(loss, ["clustering_loss: ", loss, _tf.shape(loss)])
    _tf.summary.scalar("losses/score_pred", travel)
    _tf.summary.scalar(f"losses/{margin_type}", agreement)
    _tf.summary.scalar("losses/score_gt", known)
    return loss


def _score(kind: str) -> _Score:
    name = _SCORES[kind]
    if name is None:
        return lambda labels, found: float((labels == found).all())
    try:
        from sklearn import metrics
    except ImportError as error:
        raise ImportError("cluster_loss depends on sklearn: pip install scikit-learn") from error
    score = getattr(metrics, name)
    return lambda labels, found: max(0.0, float(score(labels, found)))


def _members(labels: np.ndarray) -> list[np.ndarray]:
    """Places of each label, in the order in which labels come."""
    return [np.flatnonzero(labels == label) for label in dict.fromkeys(labels.tolist())]


def _nearest(apart: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The centroid of each point, of which one is its own."""
    found = apart[chosen].argmin(0)
    found[chosen] = np.arange(len(chosen))
    return found


def _centroids(apart: np.ndarray, labels: np.ndarray, multiplier: float, score: _Score) -> np.ndarray:
    """As many centroids as labels, the next one each time that gives the most, margin included."""
    chosen = np.zeros(0, np.int64)
    for _ in range(len(set(labels.tolist()))):
        others = np.setdiff1d(np.arange(len(labels)), chosen)
        gains = [
            multiplier * (1.0 - score(labels, _nearest(apart, more))) - apart[more].min(0).sum()
            for more in (np.append(chosen, other) for other in others)
        ]
        chosen = np.append(chosen, others[np.argmax(gains)])
    return chosen


def _bettered(
    apart: np.ndarray, labels: np.ndarray, chosen: np.ndarray, multiplier: float, score: _Score
) -> np.ndarray:
    """Centroids after rounds in which each goes to the member of its cluster that gives the most."""
    for _ in range(_ROUNDS):
        found = _nearest(apart, chosen)
        for number in range(len(chosen)):
            members = np.flatnonzero(found == number)
            gains = []
            for member in members:
                moved = chosen.copy()
                moved[number] = member
                gains.append(
                    multiplier * (1.0 - score(labels, _nearest(apart, moved))) - apart[np.ix_(members, [member])].sum()
                )
            chosen = chosen.copy()
            chosen[number] = members[np.argmax(gains)]
    return chosen
