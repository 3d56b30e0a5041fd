"""Compiling with the system's compiler, and what is said when there is none, or when it refuses."""

from __future__ import annotations

import re

import pytest
from graphdock.errors import InvalidArgumentError, NotFoundError
from graphdock_native import compile_library, platform_tag
from graphdock_native.build import library_suffix

EMPTY = "#include <graphdock/kernel.h>\nGRAPHDOCK_LIBRARY\n"


def test_the_target_gets_its_suffix_and_its_folder(tmp_path):
    source = tmp_path / "with space.c"
    source.write_text(EMPTY)
    made = compile_library([source], tmp_path / "a" / "b" / "lib")
    assert made == tmp_path / "a" / "b" / f"lib{library_suffix()}" and made.is_file()


@pytest.mark.parametrize(("suffix", "variable"), [(".c", "CC"), (".cpp", "CXX")])
def test_without_a_compiler_the_remedy_is_named(tmp_path, monkeypatch, suffix, variable):
    source = tmp_path / f"x{suffix}"
    source.write_text(EMPTY)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(
        NotFoundError,
        match=rf"no C(\+\+)? compiler is here \(looked for c.*\n  hint: install one .*or {variable}=/path",
    ):
        compile_library([source], tmp_path / "x")
    monkeypatch.setenv(variable, "nocc -m64")
    with pytest.raises(NotFoundError, match=rf"looked for {variable}=nocc\)"):
        compile_library([source], tmp_path / "x")


def test_what_the_compiler_says_is_in_the_message(tmp_path):
    source = tmp_path / "bad.c"
    source.write_text("int broken(void) { return missing; }\n")
    with pytest.raises(InvalidArgumentError, match=r"can't compile bad\.\w+:\n(.*\n)*.*bad\.c:1.*missing"):
        compile_library([source], tmp_path / "bad")
    with pytest.raises(InvalidArgumentError, match="no source files are given"):
        compile_library([], tmp_path / "bad")


def test_flags_of_the_environment_come_last(tmp_path, monkeypatch):
    source = tmp_path / "flag.c"
    source.write_text("#if WANTED != 2\n#error it comes too early\n#endif\n")
    monkeypatch.setenv("CFLAGS", "-UWANTED -DWANTED=2")
    assert compile_library([source], tmp_path / "flag", ["-DWANTED=1"]).is_file()


def test_the_tag_of_a_wheel_names_the_system_and_no_python():
    assert re.fullmatch(r"py3-none-[a-z0-9_]+", platform_tag())
