"""What conformance does not reach of the structural ops: many terms, updates of variables, errors noted by kernels."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import ml_dtypes
import numpy as np
import pytest
from graphdock.config.session_config import SessionConfig
from graphdock.errors import InvalidArgumentError
from graphdock.graph.graph import Graph
from graphdock.session.session import Session


def test_halves_of_many_terms_are_rounded_once(on_cuda: Any) -> None:
    rng = np.random.default_rng(3)
    terms = [rng.normal(size=37).astype(ml_dtypes.bfloat16) for _ in range(70)]
    (got,) = on_cuda(lambda *xs: tf.add_n(list(xs)), *terms)
    exact = np.sum([t.astype(np.float64) for t in terms], 0)
    assert np.allclose(got.astype(np.float64), exact, rtol=2**-8, atol=1e-5)


def test_variables_are_updated_in_place(kit: Any) -> None:
    graph = Graph()
    with graph.as_default(), graph.device("/device:cuda:0"):
        v = tf.get_variable("v", initializer=np.arange(1000, dtype=np.int32))
        up, down = v.assign_add(np.full(1000, 7, np.int32)), v.assign_sub(np.full(1000, 2, np.int32))
        config = SessionConfig(backends=("cuda", "cpu"), fallback="forbid")
        with Session(graph=graph, config=config, host=kit.host) as session:
            session.run(tf.global_variables_initializer())
            session.run(up)
            session.run(down)
            assert np.array_equal(session.run(v), np.arange(1000) + 5)


@pytest.mark.parametrize(("bad", "text"), [(np.nan, "had NaN\\n"), (np.inf, "had infinity\\n")])
def test_what_is_no_number_is_told_late_and_by_name(on_cuda: Any, bad: float, text: str) -> None:
    x = np.zeros(5000, np.float32)
    x[4097] = bad
    with pytest.raises(InvalidArgumentError, match=text):
        on_cuda(lambda x: tf.check_numerics(x, "here"), x)


def test_a_list_with_a_number_twice_is_no_permutation(on_cuda: Any) -> None:
    x = np.random.default_rng(0).permutation(3000).astype(np.int32)
    (got,) = on_cuda(tf.invert_permutation, x)
    assert np.array_equal(got[x], np.arange(3000))
    x[5] = x[6]
    with pytest.raises(InvalidArgumentError, match="not a permutation of 0 .. 2999"):
        on_cuda(tf.invert_permutation, x)
