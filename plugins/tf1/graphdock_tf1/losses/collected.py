"""The collections of losses, and their sum."""

from __future__ import annotations

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError


def add_loss(loss: _tf.Tensor, loss_collection: str | None = _tf.GraphKeys.LOSSES) -> None:
    """Add a loss of one's own to the collection; None for none."""
    if loss_collection:
        _tf.add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = _tf.GraphKeys.LOSSES) -> list[_tf.Tensor]:
    """The losses of the collection, or those whose name ``scope`` matches at the beginning."""
    return _tf.get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[_tf.Tensor]:
    """Return what regularizers added, or those of it whose name ``scope`` matches at the beginning."""
    return _tf.get_collection(_tf.GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(scope: str | None = None, name: str = "total_regularization_loss") -> _tf.Tensor:
    """The sum of :func:`get_regularization_losses`; 0 where there are none."""
    losses = get_regularization_losses(scope)
    return _tf.add_n(losses, name=name) if losses else _ops.constant(0.0)


def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> _tf.Tensor:
    """The sum of all losses, with those of regularizers: what a training step makes smaller.

    Raises:
      InvalidArgumentError: there are none.
    """
    losses = get_losses(scope) + (get_regularization_losses(scope) if add_regularization_losses else [])
    if not losses:
        raise InvalidArgumentError("there are no losses to add", hint="functions of tf.losses collect what they return")
    return _tf.add_n(losses, name=name)
