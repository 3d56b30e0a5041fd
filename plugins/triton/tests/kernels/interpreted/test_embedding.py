"""Rows taken by number, and added in order."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock_triton.kernels.embedding import gather_rows, scatter_add_rows
from graphdock_triton.kernels.spec import Config, Problem
from graphdock_triton.testing.launching import interpret

from .close import assert_close, draw, empty, wide


@pytest.mark.parametrize("kind", ["fp32", "bf16"])
@pytest.mark.sampled(2)
def test_rows_by_number(kind):
    rng = np.random.default_rng(2)
    table, numbers = draw(rng, (9, 21), kind), rng.integers(0, 9, 13).astype(np.int32)
    table[3, 4] = np.nan
    y, fault = empty((13, 21), kind), np.zeros(3, np.int64)
    problem = Problem({"count": 13, "height": 9, "width": 21}, {"T": kind, "I": "i32"}, present=frozenset({"fault"}))
    config = Config({"BLOCK": 16, "ROWS": 4})
    interpret(gather_rows, problem, config, table=table, numbers=numbers, y=y, fault=fault, code=5)
    np.testing.assert_array_equal(wide(y), wide(table)[numbers])
    assert not fault.any()
    numbers[6], numbers[11] = -2, 9
    interpret(gather_rows, problem, config, table=table, numbers=numbers, y=y, fault=fault, code=5)
    assert fault.tolist() in ([-2, 6, 5], [9, 11, 5])
    assert not wide(y)[[6, 11]].any()


@pytest.mark.parametrize("kind", ["fp32", "fp16"])
@pytest.mark.sampled(2)
def test_rows_of_one_number_are_added_in_order(kind):
    rng = np.random.default_rng(3)
    numbers = rng.integers(0, 6, 17)
    numbers[:4] = 8
    order = np.argsort(numbers, kind="stable").astype(np.int32)
    grads, table = draw(rng, (17, 21), kind), draw(rng, (9, 21))
    grads[0, 0], grads[1, 0], grads[2, 0] = 60000, -60000, 0.125  # another order would lose the last
    expected = wide(table)
    np.add.at(expected, numbers, wide(grads))
    problem = Problem({"count": 17, "width": 21}, {"T": "fp32", "G": kind})
    before = table.copy()
    values = {"grads": grads, "ordered": numbers[order].astype(np.uint32), "order": order}
    interpret(scatter_add_rows, problem, Config({"BLOCK": 16}), table=table, **values)
    assert_close(np.delete(table, 8, 0), np.delete(expected, 8, 0), "fp32", 3)
    one_by_one = before[8].copy()
    for row in np.flatnonzero(numbers == 8):
        one_by_one += grads[row].astype(np.float32)
    np.testing.assert_array_equal(table[8], one_by_one)
