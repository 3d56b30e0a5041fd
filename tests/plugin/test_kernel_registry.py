"""Kernels of modules: listed and chosen by the rows of a manifest, imported when a plan chooses one, and compared with the rows."""

from __future__ import annotations

import json
import subprocess
import sys

import graphdock as tf
import numpy as np
import pytest
from click.testing import CliRunner
from graphdock.cli import cli
from graphdock.contracts import KernelDef, KernelModule, hookimpl
from graphdock.errors import InvalidArgumentError, ManifestError, PluginError
from graphdock.plugin.host import Host
from graphdock.plugin.kernel_registry import RegisteredKernel, row_of
from graphdock.plugin.manifest import MARKER

PLUGIN = """\
from graphdock.contracts import KernelModule, hookimpl

@hookimpl
def register_kernels(): return [KernelModule(f"graphdock_lazy.{name}") for name in ("near", "far")]
"""
NEAR = """\
import numpy as np
from graphdock.contracts import KernelDef

def check(node):
    return "it is too far" if node.attrs.get("_far") else None

KERNELS = [KernelDef("Abs", "cpu", lambda ctx: np.abs, "near", types={"T": ["float32", "float64"]}, check=check, priority=2)]
"""
FAR = (
    NEAR.replace('"near"', '"far"')
    .replace(", check=check, priority=2", "")
    .replace('["float32", "float64"]', '["float32"]')
)
ROWS = """\
  {op = "Abs", device = "cpu", name = "far", module = "graphdock_lazy.far", types = {T = ["float32"]}},
  {op = "Abs", device = "cpu", name = "near", module = "graphdock_lazy.near", types = {T = ["float32", "float64"]}, priority = 2},
"""


@pytest.fixture
def lazy(site, builder, process_host):
    """Installs the plugin ``lazy`` with other files or rows; returns the host that the process uses now."""

    def install(near=NEAR, far=FAR, rows=ROWS):
        manifest = builder.MANIFEST.format(name="lazy") + (
            f"\n{MARKER}\n\n[kernels]\nrows = [\n{rows}]\n" if rows else ""
        )
        site.plugin("lazy", PLUGIN, manifest=manifest, files={"near.py": near, "far.py": far})
        return process_host(Host())

    return install


def imported():
    return sorted(
        name.rpartition(".")[2] for name in sys.modules if name in ("graphdock_lazy.near", "graphdock_lazy.far")
    )


def run(dtype="float32", **fields):
    with tf.Graph().as_default():
        x = tf.placeholder(dtype, [2])
        y = tf.abs(x, name="y")
        with tf.Session(config=tf.SessionConfig(backends=["lazy", "cpu"], **fields)) as session:
            value = session.run(y, {x: np.array([-1, 2], dtype)})
            kernel = next(row.kernel for row in session.explain(y).rows if row.op == "Abs")
    assert value.tolist() == [1, 2]
    return kernel


def test_loading_the_plugin_imports_no_module_and_reads_no_row(lazy):
    host = lazy(rows=ROWS.replace('"float32"]}}', '"f32"]}}'))
    assert host.backend("lazy").kernel_devices == ("cpu",)
    assert next(e for e in host.ledger if e.plugin == "lazy").added.kernels == 2
    assert imported() == []
    with pytest.raises(ManifestError, match=r"graphdock_lazy/graphdock-plugin\.toml:\d+: types\.T holds 'f32'.*"):
        host.kernels.for_op("Abs")


def test_a_plan_imports_the_module_of_the_highest_rank_and_no_other(lazy):
    lazy()
    assert run() == "lazy.near"
    assert imported() == ["near"]


def test_a_row_that_does_not_fit_is_passed_over_without_an_import(lazy):
    lazy(rows=ROWS.replace(', types = {T = ["float32", "float64"]}', ', types = {T = ["float64"]}'))
    assert run() == "lazy.far"
    assert imported() == ["far"]


def test_the_next_rank_is_asked_when_the_highest_refuses(lazy):
    lazy(near=NEAR.replace('node.attrs.get("_far")', "True"))
    assert run() == "lazy.far"
    assert imported() == ["far", "near"]


def test_of_a_pin_the_pinned_kernel_is_imported_alone(lazy):
    lazy()
    assert run(kernels={"Abs@cpu": "lazy.far"}) == "lazy.far"
    assert imported() == ["far"]


@pytest.mark.parametrize(
    "fault", ["raise OSError('no such thing')", "raise SystemExit(3)", "KERNELS = 3", "KERNELS = [3]"]
)
def test_a_module_that_can_not_be_imported_is_named_with_plugin_and_kernel(lazy, fault):
    lazy(near=fault)
    with pytest.raises(PluginError) as caught:
        run()
    text = str(caught.value)
    assert (
        "plugin 'lazy': the module graphdock_lazy.near can't be imported for the kernel lazy.near (Abs on cpu): "
        in text
    )
    assert caught.value.__cause__ is not None
    assert run("int32") == "cpu.abs"


@pytest.mark.parametrize(
    ("near", "words"),
    [
        (NEAR.replace("priority=2", "priority=3"), "kernel near (Abs on cpu) has other priority in the code"),
        (NEAR.replace(', "float64"', ""), "has other types in the code"),
        (NEAR.replace('"near"', '"nearer"'), "kernel near (Abs on cpu) is only in the manifest; kernel nearer"),
        (
            NEAR + 'KERNELS += [KernelDef("Neg", "cpu", lambda ctx: np.negative)]\n',
            "kernel neg (Neg on cpu) is only in the code",
        ),
        (
            NEAR.replace("priority=2", "priority=2, layout='strided', deterministic=False"),
            "other layout and deterministic",
        ),
    ],
)
def test_a_module_that_is_not_what_its_rows_say_is_an_error(lazy, near, words):
    lazy(near=near)
    with pytest.raises(ManifestError) as caught:
        run()
    assert "plugin 'lazy': graphdock_lazy.near is not what the manifest says: " in str(caught.value)
    assert words in str(caught.value) and "opgen manifest" in (caught.value.hint or "")


def test_without_rows_modules_are_imported_with_the_plugin(lazy):
    host = lazy(rows="")
    host.backend("lazy")
    assert imported() == ["far", "near"]
    assert run() == "lazy.near"


def test_a_plugin_in_memory_may_name_modules_too(lazy):
    lazy()

    class Plugin:
        @hookimpl
        def register_kernels(self):
            return [KernelModule("graphdock_lazy.near"), KernelDef("Neg", "cpu", lambda ctx: np.negative)]

    host = Host(block=["lazy"])
    host.register("memory", Plugin())
    assert imported() == ["near"]
    assert [r.full_name for r in host.kernels.all() if r.plugin == "memory"] == ["memory.near", "memory.neg"]


def test_a_module_is_registered_once(lazy, monkeypatch):
    class Plugin:
        @hookimpl
        def register_kernels(self):
            return [KernelModule("graphdock_lazy.near")] * 2

    lazy()
    with pytest.raises(PluginError, match="two kernels named 'memory.near' for Abs on cpu"):
        Host(block=["lazy"]).register("memory", Plugin())


@pytest.mark.parametrize("name", ["", "a b", "a..b", 3])
def test_a_kernel_module_names_a_module(name):
    with pytest.raises(InvalidArgumentError, match="names no module"):
        KernelModule(name)


def test_what_modules_have_is_taken_back(lazy):
    host = lazy()
    host.backend("lazy")
    host.kernels.discard("lazy")
    assert not [r for r in host.kernels.for_op("Abs") if r.plugin == "lazy"] and host.kernels.modules("lazy") == []


@pytest.mark.parametrize(
    ("files", "stage", "cause"),
    [
        ({"far": "raise OSError('no such thing')"}, "import failed", "graphdock_lazy.far can't be imported for all"),
        ({"far": FAR.replace('"far"', '"afar"')}, "manifest drift", "graphdock_lazy.far is not what the manifest says"),
        ({"rows": ROWS.replace('"float32"]}}', '"f32"]}}')}, "bad manifest", "holds 'f32', which is no dtype"),
        ({}, "registered", ""),
    ],
)
@pytest.mark.sampled(2)
def test_doctor_imports_and_compares_all_modules(lazy, files, stage, cause):
    lazy(**files)
    done = CliRunner().invoke(cli, ["doctor", "lazy", "--strict", "--json"])
    assert done.exit_code == (stage != "registered"), done.output
    row = next(p for p in json.loads(done.output)["plugins"] if p["plugin"] == "lazy")
    assert row["stage"] == stage and cause in (row["cause"] or "")


def test_a_row_is_what_a_kernel_says():
    kernel = KernelDef(
        "Abs", "cpu", print, types={"T": {"int8", "float32"}}, attrs={"k": [[1, 2], 3]}, label="x", layout="strided"
    )
    row = row_of(kernel, "a.b")
    assert (row.short_name, row.types, row.attrs) == ("abs", {"T": ("float32", "int8")}, {"k": ((1, 2), 3)})
    assert (row.label, row.layout, row.priority, row.deterministic) == ("x", "strided", 0, True)
    assert row_of(kernel, None).label == ""
    assert RegisteredKernel("p", "q", kernel).kernel is kernel


PROGRAM = """\
import sys
import graphdock as tf
import numpy as np

x = tf.placeholder(tf.float32, [8, 4])
w = tf.Variable(np.ones((4, 3), np.float32))
b = tf.Variable(np.zeros(3, np.float32))
loss = tf.reduce_sum(tf.square(tf.nn.softmax(tf.nn.relu(tf.matmul(x, w) + b))))
train = tf.train.AdagradOptimizer(0.1).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run([loss, train], {x: np.ones((8, 4), np.float32)})
print(*[name for name in sys.modules if name.startswith("graphdock")])
"""
#: What the kernels of the program's ops are in, and what these share.
FAMILIES = {"array", "math", "matmul", "nn", "reduce", "softmax", "train", "views"}
SHARED = {"common", "shaped", "sharing", "special", "updates"}


#: Tells of each name that was looked for below ``tf`` in vain: ``from graphdock import MODULE`` looks there before it imports one.
WATCH = """\
import graphdock

missing = graphdock._missing
graphdock._missing = lambda prefix, name: print("missing:" + prefix + name) or missing(prefix, name)
"""


def test_a_first_session_imports_the_families_that_it_runs_and_looks_for_no_name_in_vain():
    done = subprocess.run([sys.executable, "-c", WATCH + PROGRAM], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not [name for name in loaded if name.startswith("missing:")]
    families = {name.rpartition(".")[2] for name in loaded if name.startswith("graphdock_cpu.kernels.")}
    assert families - SHARED == FAMILIES
    assert not [name for name in loaded if name.startswith(("graphdock_storage", "graphdock_testing"))]
