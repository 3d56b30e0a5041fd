"""What the tests of the llvm plugin share: region programs, compiled and called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cffi
import numpy as np
import pytest
from graphdock.contracts import RegionProgram
from graphdock_llvm import target
from graphdock_llvm.printer import ALONE, print_region
from graphdock_llvm.target import compiled, width

FFI = cffi.FFI()


def compile_and_call(
    program: RegionProgram,
    arrays: Sequence[np.ndarray],
    lanes: int = 0,
    numbers: Sequence[int] = ALONE,
    text: str = "",
    streams: Sequence[Any] = (),
) -> list[np.ndarray[Any, Any]]:
    """The outputs of a program; what stands behind them must stay as it was."""
    text = text or print_region(program, len(arrays), lanes or width())
    function = FFI.cast("void (*)(void **, int64_t *)", compiled(text))
    rooms = [np.full(out_size(o) + 64, 0xA5, np.uint8) for o in program.outputs]
    outs = [
        room[: out_size(o)].view(o.dtype.np).reshape([d or 0 for d in o.shape])
        for room, o in zip(rooms, program.outputs, strict=True)
    ]
    words = []
    for stream in streams:
        ordinal, iteration, outer = stream.counter()
        words.append((*stream.key, outer, iteration, ordinal))
    buffers = [*arrays, *outs, np.array(words, np.uint64)]
    function(
        FFI.new("void *[]", [FFI.from_buffer(np.ascontiguousarray(b)) for b in buffers]),
        FFI.new("int64_t[]", numbers),
    )
    assert all((room[-64:] == 0xA5).all() for room in rooms), "it wrote behind an output"
    return outs


def out_size(out: Any) -> int:
    return int(np.prod([d or 0 for d in out.shape], dtype=int)) * out.dtype.size


@pytest.fixture
def call():
    """``call(program, arrays, lanes=0)``: the outputs of a region program."""
    return compile_and_call


@pytest.fixture
def compiles(monkeypatch):
    """Texts that are compiled meanwhile."""
    seen, compile_text = [], target._compile
    monkeypatch.setattr(target, "_alive", {})
    monkeypatch.setattr(target, "_compile", lambda text, *a, **k: (seen.append(text), compile_text(text, *a, **k))[1])
    return seen
