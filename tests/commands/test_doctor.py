"""``graphdock doctor``: a child process per plugin, so that a crash is a line; what makes it exit 1."""

import json

import pytest
from click.testing import CliRunner
from graphdock.cli import cli
from graphdock_commands import machine


def run(*arguments):
    return CliRunner().invoke(cli, ["doctor", *arguments])


def rows(done):
    return {row["plugin"]: row for row in json.loads(done.stdout)["plugins"]}


@pytest.fixture
def ward(site, builder):
    """A site with a healthy plugin, one without a device, one that fails, and two that end their process."""
    site.plugin("healthy", builder.device_source("healthy"), manifest=builder.device_manifest("healthy"))
    absent = builder.device_source("absent", "raise DeviceUnavailable('no board', 'plug one in')")
    site.plugin("absent", absent, manifest=builder.device_manifest("absent"))
    site.plugin("sick", "npx")
    site.plugin("quitter", "import os\nos._exit(5)")
    site.plugin(
        "crasher", "import os, signal\nprint('oh', file=__import__('sys').stderr)\nos.kill(os.getpid(), signal.SIGSEGV)"
    )
    return site


def test_each_plugin_gets_a_line_and_crashes_stay_in_the_child(ward, builder):
    found = rows(run("--json"))
    for name in ("cuda", "llvm", "onednn", "ray", "triton"):  # are installed here, and find a GPU or none
        found.pop(name)
    assert {name: row["stage"] for name, row in found.items()} == {
        **dict.fromkeys(builder.shipped(), "registered"),
        "absent": "no device",
        "crasher": "import failed",
        "healthy": "registered",
        "quitter": "import failed",
        "sick": "import failed",
    }
    assert found["quitter"]["cause"] == "the process ended with status 5 while it loaded"
    assert found["crasher"]["cause"].startswith("the process died of SIGSEGV while it loaded")
    assert found["healthy"]["added"] == {"devices": ["healthy"], "ops": 0, "kernels": 1, "others": []}
    assert found["healthy"]["import_ms"] > 0
    assert (found["absent"]["cause"], found["absent"]["hint"], found["absent"]["fault"]) == (
        "no board",
        "plug one in",
        False,
    )


def test_the_table_and_the_exit_status(ward):
    done = run()
    assert done.exit_code == 0
    assert "sick" in done.stdout
    assert "NameError: name 'npx' is not defined (graphdock_sick/plugin.py:1)" in done.stdout
    assert '-> a fault of graphdock-sick 1.0; `block = ["sick"]` under [plugins] silences it' in done.stdout
    assert "-> plug one in" in done.stdout
    assert done.stdout.splitlines()[-1] == "3 faults (crasher, quitter, sick). With --strict this exits 1."
    head = done.stdout.splitlines()
    assert head[0].startswith("host      graphdock 0.1.0 · contracts 0.3 · CPython 3.")
    assert head[1] == "config    no file · backends=cpu (default)"
    at = next(i for i, line in enumerate(head) if line.startswith("cpu "))
    assert head[at + 1].startswith("         cpu:0: cores=")  # what its device tells
    strict = run("--strict", "sick")
    assert strict.exit_code == 1
    assert "sick: import failed" in strict.stderr


def test_blocked_and_absent_are_no_faults(site, builder):
    absent = builder.device_source("absent", "raise DeviceUnavailable('no board')")
    site.plugin("absent", absent, manifest=builder.device_manifest("absent"))
    site.plugin("quitter", "import os\nos._exit(5)")
    (site.folder.parent / "work" / "graphdock.toml").write_text('[plugins]\nblock = ["quitter"]\n')
    done = run("--strict")
    assert done.exit_code == 0, done.output
    assert "No faults." in done.stdout


def test_a_class_that_lacks_a_method_is_a_fault_before_a_session_comes_upon_it(site, builder):
    source = builder.device_source("chip").replace("    def copy(self, src, dst): np.copyto(dst, src)\n", "")
    site.plugin("chip", source, manifest=builder.device_manifest("chip"))
    row = rows(run("--json", "chip"))["chip"]
    assert (row["stage"], row["fault"]) == ("inconsistent", True)
    assert row["cause"].startswith("graphdock_chip.plugin.Chip lacks copy: `def copy(self, src")


def test_those_that_are_named_are_examined_alone_and_required(ward):
    done = run("--json", "absent", "healthy")
    assert {name: row["stage"] for name, row in rows(done).items()} == {"absent": "no device", "healthy": "registered"}
    assert done.exit_code == 1 and json.loads(done.stdout)["findings"] == ["absent is required and stands at no device"]
    assert run("healthy").exit_code == 0
    done = run("helthy")
    assert done.exit_code == 1 and "helthy is required and not installed: did you mean 'healthy'?" in done.stderr


@pytest.mark.exhaustive
def test_require(site, builder):
    absent = builder.device_source("absent", "raise DeviceUnavailable('no board')")
    site.plugin("absent", absent, manifest=builder.device_manifest("absent"))
    assert run("--require", "cpu").exit_code == 0
    done = run("--require", "absent", "--require", "cpuu")
    assert done.exit_code == 1
    assert "absent is required and stands at no device" in done.stderr
    assert "cpuu is required and not installed: did you mean 'cpu'?" in done.stderr


@pytest.mark.exhaustive
def test_a_plugin_that_prints_disturbs_nothing(site):
    site.plugin("chatty", 'print(\'{"not": "json"}\')')
    assert rows(run("--json"))["chatty"]["stage"] == "registered"


def test_the_toy_package_has_no_drift(toy):
    assert rows(run("toy", "--json"))["toy"]["stage"] == "registered"


@pytest.mark.parametrize(
    ("core", "avx512", "coretype", "warned"),
    [
        ("Haswell", True, None, True),
        ("Haswell", True, "SkylakeX", False),
        ("Haswell", False, None, False),
        ("SkylakeX", True, None, False),
        (None, True, None, False),
    ],
)
def test_the_note_on_openblas(core, avx512, coretype, warned):
    text = machine.note({"blas_core": core, "avx512": avx512, "coretype": coretype})
    assert (text is not None) == warned
    assert not warned or "OPENBLAS_CORETYPE=SkylakeX" in text


PARTS = """\
import numpy as np
from graphdock.contracts import KernelDef, hookimpl

@hookimpl
def register_kernels():
    make = lambda ctx: np.copy
    return [KernelDef("Rellu", "cpu", make), KernelDef("Abs", "cpu", make, name="a"), KernelDef("Abs", "cpu", make, name="b")]
"""


def test_parts_that_do_not_fit_are_said_before_a_session_finds_them(site):
    package = site.plugin("parts", PARTS)
    (site.folder / package / "specs").mkdir()
    (site.folder / package / "specs" / "lab.yaml").write_text("graphdock_opdef: 1\n")
    row = rows(run("parts", "--json"))["parts"]
    assert (row["stage"], row["fault"]) == ("inconsistent", True)
    for text in ("specs/lab.yaml: run", "rellu is for Rellu, which nobody declares", "a and b tie for Abs on cpu"):
        assert text in row["cause"]
    assert run("parts", "--strict").exit_code == 1


NAMES = """\
import numpy as np
from graphdock.contracts import KernelDef, hookimpl

@hookimpl
def register_kernels():
    make = lambda ctx: np.copy
    return [KernelDef("Abs", "cpuu", make), KernelDef("Relu", "cpu", make, types={"TT": ["int8"]})]
"""


def test_names_that_nobody_has_are_a_fault(site):
    site.plugin("names", NAMES)
    row = rows(run("names", "--json"))["names"]
    assert (row["stage"], row["fault"]) == ("inconsistent", True)
    assert "is for the device cpuu, which nobody has; did you mean 'cpu'?" in row["cause"]
    assert "names 'TT', and Relu has no such type variable; did you mean 'T'?" in row["cause"]


def test_parts_for_a_package_that_is_not_here_are_a_line_and_no_fault(site):
    site.plugin("far", NAMES.replace("cpuu", "elsewhere").replace("TT", "T"))
    done = run("--strict", "far")
    assert done.exit_code == 0, done.output
    assert "it has kernels for the device elsewhere, which no installed package has" in done.stdout


MANY = """\
import numpy as np
from graphdock.contracts import KernelDef, hookimpl

@hookimpl
def register_kernels():
    return [KernelDef("Abs", "cpuu", lambda ctx: np.copy, name=f"abs_{i}") for i in range(6)]
"""


def test_json_has_all_that_is_wrong_and_people_are_told_three(site):
    site.plugin("many", MANY)
    cause = rows(run("many", "--json"))["many"]["cause"]
    assert all(f"kernel abs_{i} " in cause for i in range(6)) and "more" not in cause
    shown = run("many").stdout
    assert "kernel abs_2 " in shown and "kernel abs_3 " not in shown and "more" in shown
