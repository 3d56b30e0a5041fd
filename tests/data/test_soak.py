"""scripts/soak.py: random closes, resets, deadlines and Ctrl-C of steps that wait. Exhaustive: ten minutes of it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

_PATH = Path(__file__).parents[2] / "scripts" / "soak.py"


def _soak(seconds, seed):
    spec = importlib.util.spec_from_file_location("soak", _PATH)
    module = sys.modules["soak"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.soak(seconds, seed)


@pytest.mark.slow
def test_a_few_episodes():
    tally = _soak(0, 5)  # how late a wait ends is judged by the long run alone: it is the machine's, too
    assert not [fault for fault in tally.faults if not fault.startswith("woken by")]
    assert tally.counts["steps"] > 0 and len(tally.late["Ctrl-C"]) == 3


@pytest.mark.exhaustive
def test_ten_minutes():
    assert _soak(600, 11).faults == []
