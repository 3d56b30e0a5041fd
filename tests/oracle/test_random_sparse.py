"""Random programs over sparse tensors answer as TensorFlow's do, know as much of their shapes, and refuse what it refuses."""

from __future__ import annotations

from pathlib import Path

import graphdock as tf
import numpy as np
import pytest

from tests.oracle import random_sparse as programs
from tests.oracle.peer_programs import peer

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

SEEDS = range(400)
TEXT = Path(programs.__file__).read_text("utf-8").replace("from __future__ import annotations\n", "")
TEXT += f"\nfor seed in {SEEDS!r}: facts[seed] = answer(tf, seed)\n"


def differs(ours, theirs):
    """What is otherwise than it is there."""
    if "refused" in theirs or "refused" in ours:
        return None if ("refused" in theirs) == ("refused" in ours) else "refusal"
    for mine, due in zip(ours["values"], theirs["values"], strict=True):
        if mine.shape != due.shape or not np.allclose(mine, due, 1e-5, 1e-5, equal_nan=True):
            return "values"
    for mine, due in zip(ours["shapes"], theirs["shapes"], strict=True):
        fits = due is None or (
            mine is not None and len(mine) == len(due) and all(b in (None, a) for a, b in zip(mine, due, strict=True))
        )
        if not fits:
            return f"static shape {mine}, TensorFlow knows {due}"
    return None


def test_they_answer_alike():
    theirs = peer({"sparse": TEXT})
    if theirs is None:
        pytest.skip("TensorFlow is not installed")
    wrong = [
        (seed, what)
        for seed, answered in theirs["sparse"][0].items()
        if (what := differs(programs.answer(tf, seed), answered))
    ]
    assert not wrong, wrong
    assert 5 < sum("refused" in a for a in theirs["sparse"][0].values()) < len(SEEDS) / 2
