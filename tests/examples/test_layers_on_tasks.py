"""Layers on three tasks have the losses of one process, and send one another activations and gradients, no weights."""

from __future__ import annotations

import numpy as np
import pytest

from examples import layers_on_tasks


@pytest.fixture(scope="module")
def found():
    return layers_on_tasks.together(4)


def test_losses_are_those_of_one_process(found):
    one, _ = layers_on_tasks.train(4)
    np.testing.assert_allclose(found[0], one, rtol=1e-6, atol=1e-6)
    assert one[-1] < one[0]


def test_each_layer_hands_one_tensor_per_loop_to_the_next_and_gets_its_gradient(found):
    rows = [(e["from"][-1] + e["to"][-1], e["bytes"]) for e in found[1].facts()["edges"] if e["from"] != e["to"]]
    per_word = layers_on_tasks.BATCH * layers_on_tasks.UNITS * 4
    loops = sorted([layers_on_tasks.LENGTH * per_word, (layers_on_tasks.LENGTH + 1) * per_word])
    for between in ("01", "12", "10", "21"):
        assert sorted(size for tasks, size in rows if tasks == between and size > 4) == loops
    assert not any(size > 4 for tasks, size in rows if tasks in ("02", "20"))


def test_it_says_its_losses(capsys, monkeypatch):
    for name in ("BATCH", "LENGTH", "UNITS"):
        monkeypatch.setattr(layers_on_tasks, name, 2)
    assert layers_on_tasks.main(["--steps", "1"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-2].startswith("one process [") and said[-1].startswith("3 tasks     [")
