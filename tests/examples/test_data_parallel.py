"""Workers that train together have the losses of one process; each by itself, or with one to spare, they learn as well."""

from __future__ import annotations

import numpy as np
import pytest

from examples import data_parallel


def test_synchronous_losses_are_those_of_one_process():
    one, two = data_parallel.alone(10, 2), data_parallel.together("synchronous", 10, 2)
    np.testing.assert_allclose(two[0][:10], one, rtol=1e-6, atol=1e-6)
    assert len(two[1]) >= 10 and one[-1] < one[0] / 4


@pytest.mark.parametrize(("mode", "workers"), [("asynchronous", 2), ("backup", 3)])
def test_other_ways_learn_too(mode, workers):
    one, found = data_parallel.alone(20, workers), data_parallel.together(mode, 20, workers)
    steps = sum(map(len, found))
    assert steps >= 20 and min(each[-1] for each in found if each) < one[0] / 4


def test_it_says_its_losses(capsys):
    assert data_parallel.main(["--steps", "2"]) == 0
    assert capsys.readouterr().out.count("worker") == 2
