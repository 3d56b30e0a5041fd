"""``tf.estimator.inputs``: input functions of arrays."""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping
from typing import Any

import graphdock as _tf
import numpy as np


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """An input function that gives batches of arrays.

    Args:
      x: an array, or name -> array, all of one length. y: likewise; None: no labels.
      batch_size: rows of a batch; the last one may have less. num_epochs: how often the rows are given; None: without end.
      shuffle: whether they are given in a random order, of ``queue_capacity`` rows at a time; has to be said.
      num_threads: taken, without effect: batches have one order.

    Returns:
      A function that gives ``features``, or ``(features, labels)`` with ``y``.

    Raises:
      ValueError: ``shuffle`` is not said, ``x`` is empty, a name is in both, or lengths differ. TypeError: ``x`` is no array.
    """
    if not isinstance(shuffle, bool):
        raise ValueError(
            "shuffle must be provided and explicitly set as boolean (it is recommended to set it as True for training); "
            f"got {shuffle}"
        )

    def input_fn() -> Any:
        features = _arrays("x", x)
        labels = {} if y is None else _arrays("y", y)
        arrays = [*features.values(), *labels.values()]
        lengths = {len(each) for each in arrays}
        if len(lengths) != 1:
            shown = {name: len(each) for name, each in (*features.items(), *labels.items())}
            raise ValueError(
                f"Length of tensors in x and y is mismatched. All elements must have the same length: {shown}"
            )
        dataset = _tf.data.Dataset.from_tensor_slices(tuple(arrays))
        if shuffle:
            dataset = dataset.shuffle(min(queue_capacity, len(arrays[0])), seed=_tf.get_default_graph().seed)
        dataset = dataset.repeat(num_epochs).batch(batch_size)
        iterator = dataset.make_initializable_iterator()
        _tf.add_to_collection(_tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        batch = list(iterator.get_next())
        found = _like(x, features, batch)
        return found if y is None else (found, _like(y, labels, batch[len(features) :]))

    return input_fn


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:
    """An input function that gives batches of the columns of a ``pandas.DataFrame``; ``y`` is a Series. See :func:`numpy_input_fn`.

    Args:
      target_column: taken, without effect: labels come alone.
    """
    columns = {str(name): np.asarray(x[name]) for name in x}
    labels = None if y is None else np.asarray(y)
    return numpy_input_fn(columns, labels, batch_size, num_epochs, shuffle, queue_capacity, num_threads)


def _arrays(what: str, given: Any) -> dict[str, Any]:
    """Name -> array, in the order of the names. Raises ValueError: there is none. TypeError: one is no array."""
    named = dict(sorted(given.items())) if isinstance(given, Mapping) else {what: given}
    if not named:
        raise ValueError(f"{what} cannot be an empty dict")
    for name, each in named.items():
        if not isinstance(each, np.ndarray):
            raise TypeError(f"{what} must be an array or a dict of arrays; got {type(each).__name__} for {name!r}")
    return named


def _like(given: Any, names: Mapping[str, Any], batch: list[Any]) -> Any:
    """Tensors as a dict where arrays were given as one, else the one tensor."""
    if isinstance(given, Mapping):
        return collections.OrderedDict(zip(names, batch, strict=False))
    return batch[0]
