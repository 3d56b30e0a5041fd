"""Compiling with the system's compiler, and what is said when there is none, or when it refuses."""

from __future__ import annotations

import hashlib
import re

import pytest
from graphdock.errors import InvalidArgumentError, NotFoundError
from graphdock.plugin.lint import stale_libraries
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


def test_a_source_or_a_header_that_has_changed_since_is_told_until_it_is_compiled_again(tmp_path):
    source, header = tmp_path / "native" / "fast.c", tmp_path / "native" / "fast.h"
    source.parent.mkdir()
    source.write_text(EMPTY + '#include "fast.h"\n')
    header.write_text("/* one */\n")
    package = tmp_path / "src" / "fast"
    target = package / "_native" / "fast"
    name = compile_library([source], target).name
    assert list(stale_libraries(package)) == []
    for file in (source, header):
        file.write_text(file.read_text() + "/* more */\n")
        want = (
            f"{file.name} has changed since _native/{name} was compiled: rebuild: pip install -e . --no-build-isolation"
        )
        assert list(stale_libraries(package)) == [want]
        compile_library([source], target)
        assert list(stale_libraries(package)) == []
    source.unlink()  # as where a wheel is installed
    assert list(stale_libraries(package)) == []


def test_the_digests_are_those_of_sha256sum(tmp_path):
    source = tmp_path / "a.c"
    source.write_text(EMPTY)
    made = compile_library([source], tmp_path / "a")
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    assert made.with_name(made.name + ".sources").read_text() == f"{digest}  a.c\n"
