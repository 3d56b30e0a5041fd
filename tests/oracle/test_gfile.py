"""Files read and written by random programs answer as TensorFlow's do."""

from __future__ import annotations

from pathlib import Path

import graphdock as tf
import pytest

from tests.oracle.peer_programs import peer, run
from tests.tf1.platform import gfile_programs

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

TEXT = Path(gfile_programs.__file__).read_text("utf-8").replace("from __future__ import annotations\n", "")
TEXT += "\nfor seed in range(2000): facts[seed] = program(seed), answers(tf.gfile.GFile, *program(seed))\n"


def test_random_programs():
    theirs = peer({"gfile": TEXT})
    if theirs is None:
        pytest.skip("TensorFlow is not installed")
    ours = run(tf, {"gfile": TEXT})
    wrong = [(a, b) for a, b in zip(ours["gfile"][0].values(), theirs["gfile"][0].values(), strict=True) if a != b]
    assert not wrong, (len(wrong), wrong[:3])
