"""Random programs of queues and datasets answer as TensorFlow's do."""

from __future__ import annotations

from pathlib import Path

import graphdock as tf
import pytest

from tests.oracle import random_feeding as programs
from tests.oracle.peer_programs import peer

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

SEEDS = range(240)
TEXT = Path(programs.__file__).read_text("utf-8").replace("from __future__ import annotations\n", "")
TEXT += f"\nfor seed in {SEEDS!r}: facts[seed] = answer(tf, seed)\n"


def test_they_answer_alike():
    theirs = peer({"feeding": TEXT})
    if theirs is None:
        pytest.skip("TensorFlow is not installed")
    wrong = {}
    for seed, answered in theirs["feeding"][0].items():
        if (mine := programs.answer(tf, seed)) != answered:
            at = next((i for i, (a, b) in enumerate(zip(mine, answered, strict=False)) if a != b), len(answered))
            wrong[seed] = (at, mine[at : at + 2], answered[at : at + 2])
    assert not wrong, wrong
