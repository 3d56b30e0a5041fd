"""A library is found in its package and opened at first use; ``doctor`` opens it in a child, and says what is wrong."""

from __future__ import annotations

import shutil

import pytest
from graphdock.contracts import KernelDef, Scratch
from graphdock.errors import InvalidArgumentError, PluginError
from graphdock.plugin.host import Host
from graphdock_commands.isolated import examine
from graphdock_native import Launch, NativeLibrary

RELU = "GRAPHDOCK_KERNEL(relu) { (void)call; return GD_OK; }\n"
PLUGIN = """
from graphdock.contracts import hookimpl
from graphdock_native import NativeLibrary

LIBRARY = NativeLibrary("_native/chip", package="graphdock_chip")

@hookimpl
def register_kernels():
    return [LIBRARY.kernel("Relu", "relu", priority=5), LIBRARY.kernel("Neg", "neg", priority=5)]
"""


def examined(host=None):
    (found,) = examine([e for e in (host or Host()).ledger if e.plugin == "chip"])
    return found.entry


def install(site, library):
    package = site.plugin("chip", PLUGIN)
    if library is not None:
        folder = site.folder / package / "_native"
        folder.mkdir()
        shutil.copy(library, folder / f"chip{library.suffix}")


def test_a_kernel_is_declared_without_its_library(tmp_path):
    library = NativeLibrary(tmp_path / "gone")
    kernel = library.kernel("Relu", "relu", types={"T": ["float32"]}, priority=3, layout="strided")
    assert isinstance(kernel, KernelDef) and kernel.prepare is not None
    assert (kernel.op, kernel.device, kernel.priority, kernel.layout) == ("Relu", "cpu", 3, "strided")
    assert repr(library) == f"NativeLibrary({str(tmp_path / 'gone')!r})"
    with pytest.raises(PluginError, match="is not there"):
        kernel.probe()


def test_it_is_opened_once_and_found_in_its_package(lab, site):
    made = lab.compile(RELU)
    install(site, made)
    library = NativeLibrary("_native/chip", package="graphdock_chip")
    assert library.path == site.folder / "graphdock_chip" / "_native" / f"chip{made.suffix}"
    library.symbol("relu")
    library.path.unlink()
    library.symbol("relu")
    with pytest.raises(
        PluginError, match=r"the package 'graphdock_none', which ships the native library x\.\w+, can't be"
    ):
        NativeLibrary("x", package="graphdock_none").symbol("relu")


@pytest.mark.parametrize("field", ["views", "host", "build"])
def test_fields_that_a_native_kernel_does_not_have(field):
    with pytest.raises(InvalidArgumentError, match=f"a native kernel has no {field}"):
        NativeLibrary("x").kernel("Relu", "relu", **{field: {}})


def test_prepare_makes_the_whole_launch():
    with pytest.raises(InvalidArgumentError, match="has prepare and scratch, constants or shapes"):
        NativeLibrary("x").kernel("Relu", "relu", scratch=[Scratch(None, (1,))], prepare=lambda ctx: Launch())


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        (None, "chip.neg, chip.relu: the native library .* is not there"),
        (RELU, "chip.neg: the native library .* has no function 'neg'"),
        (
            RELU + "#include <stdlib.h>\n__attribute__((constructor)) static void start(void) { abort(); }\n",
            "the process died of SIGABRT while it probed its kernels",
        ),
    ],
    ids=["file", "symbol", "crash"],
)
def test_doctor_says_what_a_library_lacks(lab, site, source, cause):
    install(site, None if source is None else lab.compile(source))
    entry = examined()
    assert entry.stage == "probe failed" and entry.is_fault
    import re

    assert re.match(cause, entry.cause), entry.cause
    if source == RELU:
        assert entry.hint == "define it with GRAPHDOCK_KERNEL(neg)"


def test_doctor_has_nothing_to_say_of_a_whole_one(lab, site):
    install(site, lab.compile(RELU + RELU.replace("relu", "neg")))
    entry = examined()
    assert (entry.stage, entry.cause, entry.added.kernels) == ("registered", None, 2)


def test_another_version_is_a_line_of_doctor(lab, site):
    made = lab.compile(
        RELU,
        head="#define GRAPHDOCK_ABI_VERSION 1\n#include <graphdock/kernel.h>\nGRAPHDOCK_EXPORT const gd_abi *graphdock_abi(void);\n"
        "GRAPHDOCK_EXPORT const gd_abi *graphdock_abi(void) { static const gd_abi made = {9, 8, 8, 8}; return &made; }\n",
        flags=(),
    )
    install(site, made)
    assert examined().cause.endswith("another version of graphdock's interface (expected version 1, got version 9)")


def test_a_misspelt_keyword_of_a_kernel_is_told_the_nearest():
    with pytest.raises(InvalidArgumentError, match="the native kernel relu has no argument 'lable'") as raised:
        NativeLibrary("_native/chip", package="graphdock_chip").kernel("Relu", "relu", lable="x")
    assert raised.value.hint == "did you mean 'label'?"
