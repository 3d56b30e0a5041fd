"""Compiled code is kept: in the process, and on disk, where a damaged or unwritable folder costs time alone."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from graphdock.contracts import Axis, RegionInput, RegionOutput, RegionProgram, Term, dtypes, read_cache, write_cache
from graphdock.errors import InternalError
from graphdock_llvm import target


@pytest.fixture
def anew(monkeypatch, tmp_path):
    """A process that has compiled nothing, with a cache folder of its own."""
    monkeypatch.setattr(target, "_alive", {})
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(tmp_path))
    compilations = []
    original = target._compile

    def compile_(text, names, **options):
        compilations.append(text)
        return original(text, names, **options)

    monkeypatch.setattr(target, "_compile", compile_)
    return tmp_path, compilations


def double(call, factor: float) -> np.ndarray:
    f32 = dtypes.float32
    program = RegionProgram(
        "p",
        (Axis("i", 20),),
        (RegionInput("x", 0, f32, (20,), (0,)),),
        (Term("input", f32, (), (0,), 0), Term("literal", f32, (), (), factor), Term("mul", f32, (0, 1), (0,))),
        (RegionOutput("y", 2, f32, (20,), (0,)),),
    )
    x = np.arange(20, dtype=np.float32)
    np.testing.assert_array_equal(call(program, [x])[0], x * np.float32(factor))
    return x


def test_the_same_text_is_compiled_once_and_found_on_disk_by_another_process(anew, call, monkeypatch):
    folder, compilations = anew
    double(call, 2.0)
    double(call, 2.0)
    assert len(compilations) == 1
    (kept,) = folder.rglob("*.o")
    written = kept.stat().st_mtime_ns
    monkeypatch.setattr(target, "_alive", {})
    double(call, 2.0)
    assert kept.stat().st_mtime_ns == written
    double(call, 3.0)
    assert len(list(folder.rglob("*.o"))) == 2


@pytest.mark.parametrize("damage", [b"", b"x" * 100, None])
def test_a_damaged_file_is_made_again(anew, call, monkeypatch, damage):
    folder, _ = anew
    double(call, 2.0)
    (kept,) = folder.rglob("*.o")
    data = kept.read_bytes()
    kept.write_bytes(data[:-1] if damage is None else damage)
    monkeypatch.setattr(target, "_alive", {})
    double(call, 2.0)
    assert kept.read_bytes()[32:] == data[32:]


@pytest.mark.parametrize("foreign", [b"x" * 100, b"", "of another text"])
def test_a_file_of_something_else_is_made_again(anew, call, monkeypatch, foreign):
    folder, _ = anew
    double(call, 2.0)
    (kept,) = folder.rglob("*.o")
    data = read_cache(kept)
    if isinstance(foreign, str):
        double(call, 3.0)
        foreign = read_cache(next(path for path in folder.rglob("*.o") if path != kept))
    assert write_cache(kept, foreign)
    monkeypatch.setattr(target, "_alive", {})
    double(call, 2.0)
    assert read_cache(kept) == data


def test_an_object_is_kept_for_each_way_to_optimize_its_text(anew, call):
    folder, compilations = anew
    double(call, 2.0)
    for _ in range(2):
        target._compile(compilations[0], ("region",), optimized=True)
    assert len(list(folder.rglob("*.o"))) == 2


def test_ctrl_c_while_llvm_compiles_leaves_nothing_and_the_next_call_compiles(anew, call, monkeypatch):
    folder, _ = anew

    def pressed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(target, "_simplify", pressed)
        with pytest.raises(KeyboardInterrupt):
            double(call, 2.0)
    assert not list(folder.rglob("*.o")) and not target._alive
    double(call, 2.0)


def test_a_folder_that_can_not_be_written_costs_time_alone(anew, call, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", os.fspath(tmp_path / "file" / "within"))
    double(call, 2.0)
    assert (tmp_path / "file").read_text() == "" and target._alive


def test_text_that_is_no_llvm_is_an_internal_error():
    with pytest.raises(InternalError, match="LLVM refuses the text"):
        target.compiled("define void @region(ptr %table) { ret i32 0 }")


def test_a_function_that_is_not_in_the_module_is_an_error_and_no_address(anew):
    with pytest.raises(InternalError, match=r"LLVM links no region and nowhere: .*nowhere.*made now: .*\.o"):
        target.functions("define void @region(ptr %table, ptr %numbers) { ret void }", ("region", "nowhere"))


def test_a_text_that_is_compiled_keeps_its_code_and_little_beside_it(anew):
    """A description of the CPU takes most of a megabyte: one serves all texts of the process."""

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    texts = [f"define void @region(ptr %table, ptr %numbers) {{ ret void }}\n; {i}" for i in range(70)]
    for text in texts[:10]:
        target.compiled(text)
    before = resident()
    addresses = {target.compiled(text) for text in texts[10:]}
    assert len(addresses) == 60 and resident() - before < 60 * 400_000
