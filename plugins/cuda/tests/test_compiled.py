"""Sources, and what is kept of them on disk."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from graphdock.contracts import errors
from graphdock.plugin.host import Host
from graphdock_cuda.compiled import source
from graphdock_cuda.driver.errors import CompileError
from graphdock_cuda.formula import printed
from graphdock_cuda.testing import toolkit
from graphdock_cuda.testing.install import install


class Counting:
    """A compiler that counts, over another one."""

    def __init__(self, inner: Any) -> None:
        self._inner, self.version, self.count = inner, f"counting {inner.version}", 0

    def compile(self, text: str, name: str, architecture: str) -> bytes:
        self.count += 1
        made: bytes = self._inner.compile(text, name, architecture)
        return made


def _device(monkeypatch: pytest.MonkeyPatch, folder: Path) -> tuple[Any, Counting]:
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(folder))
    tools = toolkit()
    counting = Counting(tools.compiler)
    return install(Host(), replace(tools, compiler=counting)), counting


ONE = source(name="one", code="GD_KERNEL(one)(float* x) { *x = 1; }")


def test_code_is_compiled_once_and_kept_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    device, first = _device(monkeypatch, tmp_path)
    assert device.images.function(ONE, "one") == device.images.function(ONE, "one")
    assert first.count == 1
    (kept,) = tmp_path.rglob("one-*.bin")
    assert kept.parent.name == "sm_90a"
    again, second = _device(monkeypatch, tmp_path)
    again.images.function(ONE, "one")
    assert second.count == 0


@pytest.mark.parametrize("damage", [b"", b"short", None])
def test_a_damaged_file_is_compiled_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, damage: bytes | None
) -> None:
    device, _ = _device(monkeypatch, tmp_path)
    device.images.function(ONE, "one")
    (kept,) = tmp_path.rglob("one-*.bin")
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]) if damage is None else damage)
    again, second = _device(monkeypatch, tmp_path)
    again.images.function(ONE, "one")
    assert second.count == 1 and kept.read_bytes() == whole


def test_a_folder_that_cannot_be_written_costs_time_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cuda").write_text("a file where a folder would be")
    device, counting = _device(monkeypatch, tmp_path)
    device.images.function(ONE, "one")
    assert counting.count == 1


def test_macros_are_part_of_what_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    device, counting = _device(monkeypatch, tmp_path)
    for value in ("1", "2"):
        code = "GD_KERNEL(value)(float* x) { *x = VALUE; }"
        device.images.function(source(name="value", code=code, VALUE=value), "value")
    assert counting.count == 2


def test_a_compile_error_has_the_source_and_the_log() -> None:
    with pytest.raises(CompileError, match="nonsense") as found:
        toolkit().compiler.compile('extern "C" __global__ void k(int n) { nonsense; }', "k", "sm_80")
    assert "nonsense" in found.value.source and found.value.name == "k"


@pytest.mark.parametrize("kept", [True, False])
def test_what_does_not_compile_is_refused_with_its_log_and_its_source(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kept: bool
) -> None:
    """In a file; in the message where none can be written."""
    folder = tmp_path if kept else tmp_path / "a file"
    if not kept:
        folder.write_text("")
    device, _ = _device(monkeypatch, folder)
    broken = source(name="broken", code="GD_KERNEL(broken)(float* x) { x[0] = nonsense; }")
    with pytest.raises(errors.KernelRefused) as found:
        device.images.function(broken, "broken")
    message = found.value.message
    assert "broken does not compile for sm_90a" in message and "nonsense" in message.rpartition("source")[0]
    if kept:
        assert Path(message.rpartition("its source is ")[2]).read_text() == broken.text
    else:
        assert broken.text in message


def test_two_processes_that_compile_one_source_leave_one_whole_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each compiles, as neither finds it; the file is one of theirs, whole, and a third process compiles nothing."""
    both = threading.Barrier(2)

    class Together(Counting):
        def compile(self, text: str, name: str, architecture: str) -> bytes:
            both.wait(30)
            return super().compile(text, name, architecture)

    tools, compilers = toolkit(), []
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(tmp_path))
    for _ in range(2):
        compilers.append(Together(tools.compiler))
    devices = [install(Host(), replace(tools, compiler=c)) for c in compilers]
    images = [device.images.image(ONE) for device in devices]
    first, second = (image.ready.result(60) for image in images)
    assert [c.count for c in compilers] == [1, 1] and len(first) == len(second)
    assert [p.suffix for p in (tmp_path / "cuda").rglob("*") if p.is_file()] == [".bin"]
    third, counting = _device(monkeypatch, tmp_path)
    third.images.function(ONE, "one")
    assert counting.count == 0


def test_text_is_made_of_the_base_the_parts_and_the_code() -> None:
    text = source("block.cuh", code="int last;", SIZE="3").text
    assert text.index("#define SIZE 3") < text.index("GD_BASE") < text.index("GD_BLOCK") < text.index("int last;")


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("x + y * 2", "add(a, mul(b, number<C>(2.0)))"),
        ("-x", "neg(a)"),
        ("1 / x", "reciprocal_of(a)"),
        ("x / y", "divide(a, b)"),
        ("not x", "!(a)"),
        ("x and y or x", "((a && b) || a)"),
        ("x <= y", "(a <= b)"),
        ("select(x > 0, x, alpha * x)", "((a > number<C>(0.0)) ? a : mul(number<C>(0.2), a))"),
        ("cast(x)", "converted<i32>(a)"),
        ("floormod(abs(x), y)", "floor_mod(absolute(a), b)"),
    ],
)
def test_formulas_are_printed(formula: str, expected: str) -> None:
    assert printed(formula, {"x": "a", "y": "b"}, {"alpha": 0.2}, "i32") == expected


def test_what_no_formula_holds_is_refused() -> None:
    with pytest.raises(Exception, match="no CUDA for"):
        printed("[x]", {"x": "a"}, {}, "float")
