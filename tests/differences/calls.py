"""Calls of the everyday surface, in the forms that TensorFlow documents: each line of ``calls.txt``, in a graph of its own.

What TensorFlow answers is kept in ``calls.json``, written by ``python tests/differences/record.py calls``: of a tensor its static
shape, dtype, name and value, of other objects what a program sees, of an error its classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

CALLS = [
    line
    for line in (Path(__file__).parent / "calls.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("# ")
]

#: TensorFlow is asked with its optimizer, as programs run it.
PLAIN = False
#: Classes of errors that programs catch, of Python and of TensorFlow.
PYTHON = (AttributeError, IndexError, KeyError, NotImplementedError, OverflowError, RuntimeError, TypeError, ValueError)


def names(tf, session):
    """What a call may name: tensors, a placeholder, a variable, a sparse tensor, an image."""
    return {
        "tf": tf,
        "np": np,
        "s": session,
        "x": tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], name="x"),
        "i": tf.constant([1, 0], name="i"),
        "p": tf.placeholder(tf.float32, [None, 3], name="p"),
        "v": tf.Variable([1.0, 2.0], name="v"),
        "sp": tf.SparseTensor([[0, 0], [1, 2]], tf.constant([2.0, 3.0]), [2, 3]),
        "im": tf.constant(np.arange(16).reshape(1, 4, 4, 1), tf.float32),
    }


def answer(tf, call, make_session):
    """What a call gives."""
    with tf.Graph().as_default(), make_session() as session:
        scope = names(tf, session)
        session.run(scope["v"].initializer)
        try:
            return _Teller(tf, session, {scope["p"]: [[1.0, 2.0, 3.0]]}).told(
                eval(call, scope)
            )  # lines of this folder's file
        except (*PYTHON, tf.errors.OpError, ZeroDivisionError) as error:
            return _error(tf, error)


def _error(tf, error):
    found = [c.__name__ for c in type(error).__mro__ if c in PYTHON]
    found += [
        n for n in dir(tf.errors) if n.endswith("Error") and n != "OpError" and isinstance(error, getattr(tf.errors, n))
    ]
    return {"raises": sorted(found)}


class _Teller:
    """Writes down results of one session."""

    def __init__(self, tf, session, feeds):
        self.tf, self.session, self.feeds = tf, session, feeds

    def told(self, value):
        tf = self.tf
        if isinstance(value, tf.Variable):
            return {"variable": _name(value), **self._facts(value)}
        if isinstance(value, tf.Tensor):
            return {"tensor": _name(value), **self._facts(value)}
        if isinstance(value, tf.SparseTensor):
            return {"sparse": [self.told(t) for t in (value.indices, value.values, value.dense_shape)]}
        if isinstance(value, tf.IndexedSlices):
            return {"slices": [self.told(value.indices), self.told(value.values)]}
        if isinstance(value, tf.Operation):
            return {"operation": value.name, "value": self._run(value)}
        if isinstance(value, tf.TensorShape):
            return {"shape": _dims(value)}
        if isinstance(value, tf.Dimension):
            return {"dim": value.value}
        if isinstance(value, tf.DType):
            return {"dtype": value.name}
        if isinstance(value, np.ndarray | np.generic):
            return {"array": str(value.dtype), "value": _elements(value)}
        if isinstance(value, Mapping):
            return {"dict": {str(k): self.told(v) for k, v in value.items()}}
        if isinstance(value, list | tuple):
            return {type(value).__name__: [self.told(v) for v in value]}
        return (
            repr(value)
            if value is None or isinstance(value, bool | int | float | str | bytes)
            else type(value).__name__
        )

    def _facts(self, value):
        return {"shape": _dims(value.shape), "dtype": value.dtype.base_dtype.name, "value": self._run(value)}

    def _run(self, fetch):
        tf = self.tf
        if getattr(fetch, "op", fetch).type == "Placeholder" and fetch not in self.feeds:
            return None  # which ends a process of TensorFlow
        try:
            self.session.run([w.initializer for w in tf.global_variables() + tf.local_variables()])
            found = self.session.run(fetch, self.feeds)
        except tf.errors.OpError as error:
            return _error(tf, error)
        return None if found is None else _elements(found)


def _name(value):
    return value.name.partition(":")[0]


def _dims(shape):
    return None if shape.ndims is None else shape.as_list()


def _elements(array):
    array = np.asarray(array)
    if array.dtype.kind in "OSUV":
        return [list(array.shape), [str(v) for v in array.ravel()[:12].tolist()]]
    if array.dtype.kind not in "biufc":
        array = array.astype(np.float32)
    return [
        list(array.shape),
        [f"{v:.5g}" for v in array.ravel()[:12].astype(complex if array.dtype.kind == "c" else float).tolist()],
    ]


def answers(tf, make_session):
    """The answers to all calls, as they are kept."""
    return {call: answer(tf, call, make_session) for call in CALLS}
