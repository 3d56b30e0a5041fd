"""Each room has a page of ten lines: what it is for, its one entry, what it may import, how to test it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOST = ROOT / "host" / "graphdock"
ROOMS = [
    ROOT / "host",
    ROOT / "opgen",
    ROOT / "templates",
    *sorted(p for p in HOST.iterdir() if (p / "__init__.py").is_file()),
    *sorted(p for p in (ROOT / "plugins").iterdir() if p.is_dir() and p.name not in ("cuda", "llvm", "triton")),
]


@pytest.mark.parametrize("room", ROOMS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_room_says_what_it_is_for(room):
    if room == HOST / "messages" or not any(room.rglob("*.py")):
        pytest.skip("generated, or a table")
    text = (room / "README.md").read_text()
    assert len(text.splitlines()) <= 14
    for part in ("- Entry:", "- May import:", "- Test it:"):
        assert part in text
    package = next((p for p in room.glob("graphdock*") if p.is_dir()), room)
    for name in re.findall(r"`((?:graphdock\w*/)?[\w/]+\.py)`", text):
        assert any((folder / name).is_file() for folder in (room, package, ROOT)), name
    for folder in re.findall(r"tests/[\w/.]+", text):
        assert (ROOT / folder).exists(), folder
