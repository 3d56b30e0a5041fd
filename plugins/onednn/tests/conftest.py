"""Fixtures of the onednn plugin's tests: sessions with it and without, beside each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import errors
from graphdock_onednn.library import find

BACKENDS = ("onednn", "cpu")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without the library what needs it is skipped; what is said of a missing one is tested everywhere."""
    try:
        find()
    except errors.FailedPreconditionError as error:
        for item in items:
            if "onednn/tests" in item.path.as_posix() and item.path.name != "test_library.py":
                item.add_marker(pytest.mark.skip(reason=error.message))


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def both() -> Callable[..., dict[str, int]]:
    """``both(fetches, feed)``: the kernels of a session with the plugin, whose results are those of the cpu alone."""

    def compare(fetches: Sequence[Any], feed: Mapping[Any, Any], near: float = 2e-5, **settings: Any) -> dict[str, int]:
        found = []
        for fields in ({"backends": BACKENDS, **settings}, {"backends": ("cpu",)}):
            with tf.Session(config=tf.SessionConfig(**fields)) as sess:
                sess.run(tf.global_variables_initializer())
                first = sess.run(fetches, feed)
                again = sess.run(fetches, feed)
                for a, b in zip(first, again, strict=True):
                    np.testing.assert_array_equal(a, b)
                found.append((first, sess.explain(fetches, feed).kernels()))
        (got, kernels), (want, _) = found
        for g, w in zip(got, want, strict=True):
            scale = np.abs(np.where(np.isfinite(w), w, 0)).max(initial=1e-30)
            np.testing.assert_allclose(np.asarray(g) / scale, np.asarray(w) / scale, rtol=near, atol=near)
        return kernels

    return compare
