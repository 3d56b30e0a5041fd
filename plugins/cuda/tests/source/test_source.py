"""The files of ``source/`` as text."""

from __future__ import annotations

from graphdock_cuda.source import PARTS, part, prelude


def test_the_prelude_is_its_parts_with_their_names():
    text = prelude()
    assert [line for line in text.splitlines() if line.startswith("#line")] == [f'#line 1 "{name}"' for name in PARTS]
    assert all(part(name) in text for name in PARTS)
    assert part("block.cuh") not in prelude("base.cuh")


def test_no_part_includes_a_file():
    assert not [name for name in PARTS if "#include" in part(name)]
