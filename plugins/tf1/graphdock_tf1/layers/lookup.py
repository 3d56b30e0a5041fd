"""Activations and initialisers by name, as ``activation="relu"``, and the regularizer that is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as _tf
from graphdock.errors import NotFoundError, did_you_mean

_ACTIVATIONS = (
    "elu", "leaky_relu", "log_softmax", "relu", "relu6", "selu", "sigmoid", "softmax", "softplus", "softsign", "swish", "tanh",
)  # fmt: skip
_INITIALIZERS = (
    "constant", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "identity", "lecun_normal", "lecun_uniform",
    "ones", "orthogonal", "random_normal", "random_uniform", "truncated_normal", "variance_scaling", "zeros",
)  # fmt: skip


def activation_of(given: Any) -> Callable[[Any], Any] | None:
    """An activation by its name below ``tf.nn``, ``"linear"`` for none, or what was given.

    Raises:
      NotFoundError: no such activation.
    """
    if not isinstance(given, str):
        return given  # type: ignore[no-any-return]
    if given == "linear":
        return None
    if given not in _ACTIVATIONS:
        raise _unknown("activation", given, (*_ACTIVATIONS, "linear"))
    found: Callable[[Any], Any] = getattr(_tf.nn, given)
    return found


def initializer_of(given: Any) -> Any:
    """An initialiser by its name below ``tf.initializers``, or what was given.

    Raises:
      NotFoundError: no such initialiser.
    """
    if not isinstance(given, str):
        return given
    if given not in _INITIALIZERS:
        raise _unknown("initializer", given, _INITIALIZERS)
    return getattr(_tf.initializers, given)()


def _unknown(kind: str, given: str, known: tuple[str, ...]) -> NotFoundError:
    return NotFoundError(
        f"there is no {kind} {given!r}", expected=", ".join(known), got=given, hint=did_you_mean(given, known)
    )


def no_regularizer(_: Any) -> None:
    """No loss: keeps the regularizer of a variable scope from a variable."""
