"""The header is the one declaration of the interface; what was not compiled with it is refused before anything is called."""

from __future__ import annotations

import re
import subprocess
import sys

import graphdock_native.abi as abi
import pytest
from graphdock import dtypes
from graphdock.errors import GraphdockError, InternalError, PluginError
from graphdock_native import compile_library, include_directory
from graphdock_native.abi import DTYPES, HEADER, STATUSES, VERSION, cffi_interface, open_library, symbol_of


def _enum(name):
    return {constant: number for number, constant in cffi_interface().typeof(f"enum {name}").elements.items()}


def test_the_header_says_the_same_numbers(lab):
    assert int(re.search(r"#define GRAPHDOCK_ABI_VERSION (\d+)", HEADER.read_text()).group(1)) == VERSION
    assert _enum("gd_dtype") == {f"GD_{name.upper()}": number for name, number in DTYPES.items()}
    assert set(DTYPES) == {d.name for d in dtypes.ALL.values() if d.size}
    spelled = {
        number: "".join(part.capitalize() for part in name[3:].split("_"))
        for name, number in _enum("gd_status").items()
    }
    assert spelled.pop(0) == "Ok"
    assert {n: c.__name__.removesuffix("Error") for n, c in STATUSES.items()} == spelled
    assert all(issubclass(c, GraphdockError) for c in STATUSES.values()) and STATUSES[13] is InternalError


@pytest.mark.parametrize("suffix", [".c", ".cpp"])
def test_the_header_compiles_without_a_warning(tmp_path, suffix):
    source = tmp_path / f"empty{suffix}"
    source.write_text(
        "#include <graphdock/kernel.h>\nGRAPHDOCK_LIBRARY\nGRAPHDOCK_KERNEL(k) { (void)call; return GD_OK; }\n"
    )
    made = compile_library([source], tmp_path / "empty", ["-Wall", "-Wextra", "-Werror", "-pedantic"])
    assert made.is_file() and include_directory() in HEADER.parents


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("", "exports no graphdock_abi"),
        (
            "#define GRAPHDOCK_ABI_VERSION 2\n",
            "another version of graphdock's interface\n  expected version 1, got version 2",
        ),
        ("#define sizeof(x) (sizeof(x) + 8)\n", r"another gd_call than graphdock\n  expected \d+ bytes, got \d+"),
    ],
    ids=["none", "version", "size"],
)
def test_a_library_of_another_interface_is_refused_when_it_is_loaded(lab, tmp_path, head, message):
    text = HEADER.read_text().replace(
        "#define GRAPHDOCK_ABI_VERSION 1", "" if "VERSION" in head else "#define GRAPHDOCK_ABI_VERSION 1"
    )
    (tmp_path / "kernel.h").write_text(text)
    library = "GRAPHDOCK_LIBRARY" if head else "int nothing;"
    made = lab.compile(f"{library}\n", head=f'{head}#include "{tmp_path / "kernel.h"}"\n', flags=())
    with pytest.raises(PluginError, match=message):
        open_library(made)


def test_what_can_not_be_opened_is_said(lab, tmp_path):
    with pytest.raises(PluginError, match=r"gone\.so is not there\n.*hint: reinstall its package"):
        open_library(tmp_path / "gone.so")
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(PluginError, match=r"text\.so can't be loaded: .*\n.*built for this system"):
        open_library(tmp_path / "text.so")
    made = lab.compile("GRAPHDOCK_KERNEL(here) { (void)call; return GD_OK; }\n")
    library = open_library(made)
    assert symbol_of(library, made, "here") is not None
    with pytest.raises(PluginError, match=r"no function 'there'\n  hint: define it with GRAPHDOCK_KERNEL\(there\)"):
        symbol_of(library, made, "there")
    with pytest.raises(PluginError, match="is no name of a C function"):
        symbol_of(library, made, "f(void); int system")


def test_without_cffi_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cffi", None)
    abi.cffi_interface.cache_clear()
    try:
        with pytest.raises(PluginError, match=r"hint: pip install 'graphdock\[native\]'"):
            cffi_interface()
    finally:
        abi.cffi_interface.cache_clear()


def test_declaring_a_kernel_imports_neither_cffi_nor_numpy():
    code = (
        "import sys\nfrom graphdock_native import NativeLibrary\n"
        "NativeLibrary('nowhere').kernel('Relu', 'relu')\n"
        "print({'cffi', 'numpy'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "set()\n"
