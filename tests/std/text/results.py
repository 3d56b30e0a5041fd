"""What a step gives, as plain lists."""

from __future__ import annotations

from typing import Any

import graphdock as tf


def run(fetch: Any) -> Any:
    """The result of a fetch in a session of its own: lists of lists; of a sparse tensor those of its three parts."""
    if hasattr(fetch, "dense_shape"):
        fetch = [fetch.indices, fetch.values, fetch.dense_shape]
    with tf.Session() as session:
        value = session.run(fetch)
    if isinstance(value, list):
        return [part.tolist() for part in value]
    return value.tolist() if hasattr(value, "tolist") else value
