"""Sources, and what is kept of them on disk."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graphdock.contracts import dtypes, errors
from graphdock.plugin.host import Host
from graphdock_cuda.compiled import source
from graphdock_cuda.driver.errors import CompileError
from graphdock_cuda.formula import printed
from graphdock_cuda.launch import Launch, i64, u64
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


#: A kernel with 1 KiB of shared memory of its own, which sums what lies in its dynamic one.
SHARED = """GD_KERNEL(spread)(i64* out, i64 count) {
  __shared__ i64 own[128];
  GD_DYNAMIC_SHARED(i64, more);
  for (i64 i = threadIdx.x; i < count; i += blockDim.x) more[i] = i;
  own[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) { i64 sum = own[127]; for (i64 i = 0; i < count; i++) sum += more[i]; *out = sum; }
}"""
KIB = 1 << 10


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param((47 * KIB, 47 * KIB - 8), id="all that needs no leave, then less"),
        pytest.param((47 * KIB + 8, 48 * KIB - 8, 8), id="just below 48 KiB, which its own part exceeds"),
        pytest.param((64, 1 * KIB, 49 * KIB, 100 * KIB, 48 * KIB, 64, 0), id="more and more, then less"),
        pytest.param((226 * KIB, 60 * KIB, 226 * KIB), id="all that a block can have, and less"),
    ],
)
def test_a_kernel_runs_with_any_shared_memory_whatever_it_ran_with_before(sizes: Sequence[int]) -> None:
    """What is allowed last holds alone: less than an earlier launch asks for must not be."""
    device = install(Host(), toolkit())
    queue, spread = device.new_queue(), source(name="spread", code=SHARED)
    with device.current():
        out = queue.empty(dtypes.int64, (len(sizes),))
        launches = []
        for number, nbytes in enumerate(sizes):
            function = device.images.function(spread, "spread", nbytes)
            params = (u64(out.address + 8 * number), i64(nbytes // 8))
            launches.append(Launch(device.driver, function, (1,), (128,), nbytes, params, queue.stream))
        for launch in launches:
            launch.run()
        queue.synchronize()
    got = np.empty(len(sizes), np.int64)
    device.to_host(out, got)
    assert got.tolist() == [1 + sum(range(nbytes // 8)) for nbytes in sizes]
    with pytest.raises(errors.InternalError, match="load spread on cuda:0: invalid value"):
        device.images.function(spread, "spread", 227 * KIB)
    device.driver.verify()  # type: ignore[attr-defined]
