"""``pytest --graphdock-backend NAME`` as an author of a backend runs it: in a process of its own, with no test code."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from graphdock_testing.conformance import Conformance

PACKAGES = Path(__file__).parent.parent / "packages"

#: A backend of one kernel, and a manifest that owns up to what it can't do.
CHIP = """
import numpy as np
from graphdock.contracts import Device, DeviceFactory, DeviceInfo, KernelDef, hookimpl

class Chip(Device):
    def allocate(self, nbytes, align=64): return np.zeros(nbytes, np.uint8)
    def view(self, storage, offset, dtype, shape):
        return np.empty(shape, object) if dtype.size == 0 else np.ndarray(shape, dtype.np, storage, offset)
    def copy(self, src, dst): np.copyto(dst, src)
    def from_host(self, array, dst): np.copyto(dst, array)
    def to_host(self, src, dst): np.copyto(dst, src)

class Factory(DeviceFactory):
    device_type = "chip"
    def probe(self): return [DeviceInfo("chip")]
    def open(self, info, options): return Chip(info)

def square(ctx):
    factor = 2 if ctx.inputs[0].dtype.name == "int16" else 1
    return lambda x, *out: np.multiply(x, x * x.dtype.type(factor), *out)

@hookimpl
def register_devices(): return [Factory()]

@hookimpl
def register_kernels(): return [KernelDef("Square", "chip", square, types={"T": ["int16", "int32", "float32", "float64"]})]
"""
MANIFEST = """\
schema = 1

[plugin]
name = "chip"
summary = "A chip of the tests"
api = ">=0.3,<0.4"

[[devices]]
type = "chip"
"""
XFAIL = """
[[conformance.xfail]]
op = "Square"
dtype = "int16"
reason = "its multiplier rounds twice"
"""


#: Plugins of this repository's tests that take a second to load.
UNUSED = ("-p", "no:hypothesispytest")


class Runner:
    """A folder without tests, and packages on the path."""

    def __init__(self, folder: Path, *path: Path) -> None:
        self.folder = folder
        self.path = path

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("GRAPHDOCK_", "PYTEST_"))}
        environment["PYTHONPATH"] = os.pathsep.join(str(p) for p in self.path)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            *UNUSED,
            *arguments,
        ]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300)


def builder():
    spec = importlib.util.spec_from_file_location("plugin_builder", PACKAGES / "plugin_builder.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    return folder


@pytest.fixture
def chip(tmp_path, work):
    """Installs the chip with the given addition to its manifest."""

    def install(extra: str = "", code: str = CHIP) -> Runner:
        site = builder().Site(tmp_path / "site")
        site.plugin("chip", code, manifest=MANIFEST + extra)
        return Runner(work, site.folder)

    return install


def test_a_run_on_cpu_ends_with_a_table_and_a_report(work):
    run = Runner(work)("--graphdock-backend", "cpu", "--graphdock-op", "Square", "--graphdock-report", "r.json")
    assert run.returncode == 0, run.stdout + run.stderr
    lines = run.stdout.splitlines()
    (row,) = [line.split() for line in lines if line.startswith("Square ")]
    assert row[1] == "reference" and set(row[2:]) == {"ok"}
    assert any(line.startswith("gradients of inputs: ") and "formula" in line for line in lines)
    report = json.loads((work / "r.json").read_text())
    assert report["backend"] == "cpu"
    assert report["totals"]["ok"] > 20 and report["totals"].keys() == {"ok"}
    assert report["ops"]["Square"]["float64"]["ok"] > report["ops"]["Square"]["float16"]["ok"]  # gradients


@pytest.mark.exhaustive
def test_a_backend_with_one_kernel_fails_where_it_is_wrong_and_lacks_the_rest(chip):
    run = chip()("--graphdock-backend", "chip", "--graphdock-op", "Square", "--graphdock-op", "Sin")
    assert run.returncode == 1
    assert "Square[int16-0]: planned, step 1" in run.stdout
    assert "chip: 2 ops, 0 whole" in run.stdout
    (row,) = [line for line in run.stdout.splitlines() if line.startswith("Square ")]
    (heads,) = [line for line in run.stdout.splitlines() if line.startswith("op ")]
    table = dict(zip(heads.split(), row.split(), strict=True))
    assert table["i16"] == "FAIL"
    assert table["i32"] == table["f32"] == table["f64"] == "ok"
    assert table["i64"] == table["f16"] == "-"


RAISES = CHIP.replace(
    "return lambda x",
    """
    def compute(x, *out):
        raise ValueError("boom")

    return compute
    return lambda x""",
)


def test_a_kernel_that_raises_is_shown_with_its_own_line(chip):
    run = chip(code=RAISES)("--graphdock-backend", "chip", "--graphdock-op", "Square")
    assert run.returncode == 1
    text = run.stdout.partition("conformance Square[float32-0]")[2]
    lines = [line for line in text.splitlines()[1:] if not line.startswith(("  op:", "  see:"))]
    assert lines[0].startswith("Square[float32-0]: ") and lines[0].endswith("ValueError: boom")
    assert lines[1].startswith("  raised at ") and lines[1].endswith(", in compute")
    assert "made at" not in run.stdout


TWO = CHIP.replace(
    "def register_kernels(): return [",
    """def register_kernels(): return [
    KernelDef("Square", "chip", wrong, name="square_fast", label="fast", types={"T": ["float32", "int32"]},
              check=lambda node: "it is for floats" if node.attrs["T"].name == "int32" else None),
    """,
).replace(
    "@hookimpl\ndef register_kernels",
    "def wrong(ctx): return lambda x, *out: np.multiply(x, x + 1, *out)\n\n@hookimpl\ndef register_kernels",
)


def test_every_kernel_is_checked_and_not_only_the_one_that_wins(chip, work):
    runner = chip(XFAIL, TWO)
    run = runner("--graphdock-backend", "chip", "--graphdock-op", "Square", "--graphdock-report", "r.json", "-rs")
    assert run.returncode == 1
    assert "Square:square_fast[float32-0]: planned, step 1" in run.stdout
    assert "does not take Square:square_fast[int32-0]" in run.stdout
    cells = json.loads((work / "r.json").read_text())["ops"]["Square"]
    assert cells["float32"]["ok"] and cells["float32"]["failed"]
    assert cells["int32"].keys() == {"ok", "refused"}


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "name", [pytest.param("fast", marks=pytest.mark.exhaustive), "square_fast", "chip.square_fast"]
)
def test_one_kernel_can_be_chosen_by_its_label_or_name(chip, name):
    ops = () if name == "fast" else ("--graphdock-op", "Square")  # all ops once
    run = chip(XFAIL, TWO)("--graphdock-backend", "chip", "--graphdock-kernel", name, *ops, "-v")
    lines = [line for line in run.stdout.splitlines() if "::" in line or "Square" in line]
    assert run.returncode == 1 and any("Square:square_fast[float32-0]" in line for line in lines)
    assert "Square[" not in run.stdout


CRASHES = CHIP.replace(
    "factor = 2 if",
    """if ctx.inputs[0].dtype.name == "int32":
        import os, signal
        os.kill(os.getpid(), signal.SIGKILL)
    factor = 2 if""",
)


def test_a_kernel_that_takes_the_process_with_it_is_a_line(chip):
    run = chip(XFAIL, CRASHES)("--graphdock-backend", "chip", "--graphdock-op", "Square")
    assert run.returncode == 1
    assert "Square[int32-0]: the process died of SIGKILL while it ran this case" in run.stdout
    (row,) = [line for line in run.stdout.splitlines() if line.startswith("Square ")]
    assert row.split().count("ok") == 2 and row.split().count("FAIL") == 1 and "xfail" in row


@pytest.mark.exhaustive
def test_without_its_device_a_backend_is_one_skip(chip):
    code = CHIP.replace('return [DeviceInfo("chip")]', 'raise DeviceUnavailable("no chip in the socket", "push it in")')
    code = code.replace("import Device,", "import Device, DeviceUnavailable,")
    run = chip(code=code)("--graphdock-backend", "chip")
    assert run.returncode == 0, run.stdout
    assert "1 skipped" in run.stdout and "no chip: no chip in the socket" in run.stdout
    assert "FAIL" not in run.stdout and "Square" not in run.stdout


@pytest.mark.exhaustive
def test_every_op_of_every_library_is_in_the_report(chip, work):
    run = chip(XFAIL)("--graphdock-backend", "chip", "--graphdock-report", "all.json")
    assert run.returncode == 0, run.stdout[-3000:]
    assert json.loads((work / "all.json").read_text())["ops"].keys() == {"device chip", *Conformance("cpu").ops}


@pytest.mark.exhaustive
def test_a_stated_exception_is_xfail_and_must_go_on_failing(chip):
    run = chip(XFAIL)("--graphdock-backend", "chip", "--graphdock-op", "Square", "-rx")
    assert run.returncode == 0, run.stdout
    assert "its multiplier rounds twice" in run.stdout
    assert " 0 failed, 5 xfail" in run.stdout


@pytest.mark.exhaustive
def test_an_exception_that_no_longer_holds_fails(chip):
    run = chip(XFAIL.replace("int16", "int32"))("--graphdock-backend", "chip", "--graphdock-op", "Square")
    assert run.returncode == 1
    assert "Square passes, although the manifest expects it to fail: its multiplier rounds twice" in run.stdout


@pytest.mark.parametrize(
    "ops", [("toy.Scale", "MatMul", "device toy"), pytest.param((), id="all", marks=pytest.mark.exhaustive)]
)
def test_the_toy_package_passes(tmp_path, work, ops):
    site = builder().Site(tmp_path / "site")
    site.project(PACKAGES / "graphdock-toy")
    named = [word for op in ops for word in ("--graphdock-op", op)]
    run = Runner(work, site.folder, PACKAGES / "graphdock-toy" / "src")(
        "--graphdock-backend", "toy", "--graphdock-quick", *named
    )
    assert run.returncode == 0, run.stdout[-3000:]
    assert "toy.Scale " in run.stdout


@pytest.mark.exhaustive
def test_only_the_files_named_are_collected_besides(work):
    (work / "test_mine.py").write_text("def test_mine(): assert False\n")
    run = Runner(work)("--graphdock-backend", "cpu", "--graphdock-op", "Sin")
    assert run.returncode == 0, run.stdout
    assert "test_mine" not in run.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--graphdock-backend", "cpi"), "did you mean 'cpu'"),
        (("--graphdock-backend", "cpu", "--graphdock-op", "MatMull"), "did you mean 'MatMul'"),
        (("--graphdock-op", "MatMul"), "--graphdock-op needs --graphdock-backend"),
        (("--graphdock-kernel", "fast"), "--graphdock-kernel needs --graphdock-backend"),
        (("--graphdock-backend", "cpu", "--graphdock-kernel", "mat_mull"), "did you mean 'mat_mul'"),
    ],
)
@pytest.mark.sampled(4)
def test_usage_errors(work, arguments, words):
    run = Runner(work)(*arguments)
    assert run.returncode == 4
    assert words in run.stdout + run.stderr


def test_without_the_option_nothing_of_graphdock_is_loaded(work):
    (work / "test_foreign.py").write_text(
        "import sys\n"
        "def test_foreign():\n"
        "    heavy = {m for m in sys.modules if m.partition('.')[0] in ('numpy', 'yaml', 'rich', 'pydantic')}\n"
        "    assert not heavy\n"
        "    mine = {m for m in sys.modules if m.partition('.')[0] == 'graphdock'}\n"
        "    assert mine <= {'graphdock', 'graphdock.names', 'graphdock_testing', 'graphdock_testing.pytest_plugin'}\n"
    )
    run = Runner(work)()
    assert run.returncode == 0, run.stdout
    assert "1 passed" in run.stdout


UNTESTED = CHIP.replace("return [KernelDef(", 'return [KernelDef("AssignAddVariableOp", "chip", square), KernelDef(')


def test_an_op_whose_spec_has_no_samples_is_not_silently_green(chip):
    runner = chip(code=UNTESTED)
    named = ("--graphdock-op", "AssignAddVariableOp", "--graphdock-report", "r.json")
    run = runner("--graphdock-backend", "chip", *named)
    assert "untested: AssignAddVariableOp (its spec has no samples)" in run.stdout.splitlines()
    assert "1 skipped" in run.stdout
    assert "chip: 1 ops, 0 whole" in run.stdout
    report = json.loads((runner.folder / "r.json").read_text())
    assert report["ops"]["AssignAddVariableOp"] == {"-": {"untested": 1}}


COMPILER = """\
from graphdock.contracts import Refusal, hookimpl
from graphdock_testing.region_reference import ReferenceCompiler

class Shy(ReferenceCompiler):
    name, updates = "shy", False

    def claim(self, candidate):
        if any(n.op == "MatMul" for n in candidate.graph.nodes):
            return Refusal("no products today")
        return super().claim(candidate)

@hookimpl
def register_region_compilers(): return [Shy()]
"""


def test_a_package_of_a_compiler_alone_has_lines_of_that_alone(tmp_path, work):
    site = builder().Site(tmp_path / "site")
    hooks = 'hooks = ["register_region_compilers"]\n'
    site.plugin("shy", COMPILER, manifest=MANIFEST.split("[[devices]]")[0].replace('"chip"', '"shy"') + hooks)
    run = Runner(work, site.folder)("--graphdock-backend", "shy", "--graphdock-in-process", "--graphdock-strict")
    lines = run.stdout.splitlines()
    assert "graphdock conformance: shy" in run.stdout, run.stdout + run.stderr
    table = lines[[i for i, line in enumerate(lines) if "graphdock conformance: shy" in line][0] + 1 :]
    rows = [line.split() for line in table if line]
    assert rows[1] == ["compiler", "shy.shy", "its", "nodes", "ok"], run.stdout + run.stderr
    said = "untested: compiler shy.shy (products: shy.shy claimed none of the random regions: no products today)"
    assert said in table
    assert not any(word in run.stdout for word in ("Identity", "no kernel for", "gradients of inputs"))
    assert run.returncode == 1, "--graphdock-strict fails where something was never checked"
