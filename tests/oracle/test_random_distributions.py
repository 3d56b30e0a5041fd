"""Random distributions answer as TensorFlow's do, and refuse what it refuses."""

from __future__ import annotations

from pathlib import Path

import graphdock as tf
import pytest

from tests.oracle.peer_programs import peer
from tests.tf1.distributions import random_distributions as programs
from tests.tf1.distributions.test_random_distributions import differs

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

SEEDS = range(20_000, 20_400)
TEXT = Path(programs.__file__).read_text("utf-8").replace("from __future__ import annotations\n", "")
TEXT += f"\nfor seed in {SEEDS!r}: facts[seed] = answer(tf, case(seed))\n"


def test_they_answer_alike():
    theirs = peer({"distributions": TEXT})
    if theirs is None:
        pytest.skip("TensorFlow is not installed")
    wrong = []
    for seed, answered in theirs["distributions"][0].items():
        asked = programs.case(seed)
        if programs.comparable(asked, answered) and (what := differs(programs.answer(tf, asked), answered)):
            wrong.append((seed, what))
    assert not wrong, wrong
