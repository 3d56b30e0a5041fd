"""The Host: what it loads and when, what it says when something is not there, and that two of them share nothing."""

import builtins
import subprocess
import sys
import threading

import graphdock.plugin.host as host_module
import pytest
from graphdock.contracts import KernelDef, OpDef
from graphdock.errors import AlreadyExistsError, PluginError, UnknownBackendError, UnknownOpError
from graphdock.plugin.host import Host, default_host
from graphdock.plugin.state import Backend

OPS = """\
from graphdock.contracts import ArgDef, OpDef

def fuse():
    BUILT.append("fuse")
    return OpDef("{ns}.Fuse", inputs=(ArgDef("x", "float32"),), outputs=(ArgDef("y", "float32"),), package="x.y")

def wrapper(x, y):
    return ("{ns}", x, y)

BUILT = []
OPS = {"{ns}.Fuse": fuse}
OPERATORS = {"__matmul_{ns}__": "graphdock_{ns}.opdefs:wrapper"}
"""
WITH_OPS = """\
from graphdock.contracts import KernelDef, OpLibrary, hookimpl

@hookimpl
def register_ops(): return [OpLibrary("graphdock_{ns}.opdefs")]

@hookimpl
def register_kernels(host):
    other = KernelDef("Identity", "cpu", lambda ctx: None, name="other")
    return [KernelDef("{ns}.Fuse", "cpu", lambda ctx: None), other]
"""


def op_plugin(site, name, **kwargs):
    """Install a plugin that declares the op ``name.Fuse`` and has a kernel for it."""
    files = {"opdefs.py": OPS.replace("{ns}", name), **kwargs.pop("files", {})}
    return site.plugin(name, kwargs.pop("source", WITH_OPS.replace("{ns}", name)), files=files, **kwargs)


def stages(host):
    return {e.plugin: e.stage for e in host.ledger}


def test_a_backend_is_loaded_once_and_described(site, builder):
    site.plugin("chip", builder.device_source("chip"), manifest=builder.device_manifest("chip"), version="2.5")
    host = Host()
    assert "graphdock_chip.plugin" not in sys.modules
    backend = host.backend("chip")
    assert backend == Backend("chip", "graphdock_chip", "graphdock-chip", "2.5", ("chip",), ("chip",))
    kernels = host.kernels.for_op("Identity")
    assert host.backend("chip") == backend
    assert host.kernels.for_op("Identity") == kernels
    assert [k.full_name for k in kernels if k.plugin == "chip"] == ["chip.identity"]


def test_an_unknown_backend_gets_the_nearest_name_or_else_the_pip_line(site):
    """A misspelt name gets no line to install it: anybody may own that one. Plugins without device and kernels are no backends."""
    with pytest.raises(UnknownBackendError) as caught:
        Host().backend("tpu_v5", "graphdock.toml:2")
    assert caught.value.message == "graphdock.toml:2: no installed plugin provides the backend 'tpu_v5'"
    wanted = "install the package that brings it; if that is graphdock-tpu-v5: pip install graphdock-tpu-v5"
    assert caught.value.hint == wanted
    assert caught.value.expected == "one of cpu, cuda, llvm, onednn, triton"
    with pytest.raises(UnknownBackendError) as caught:
        Host().backend("cpuu")
    assert caught.value.hint == "did you mean 'cpu'?"
    assert "pip" not in str(caught.value)
    with pytest.raises(UnknownBackendError) as caught:
        Host().backend("tpu")
    assert caught.value.hint.startswith(
        "did you mean 'cpu'? or install the package that brings it; if that is graphdock-tpu"
    )


def test_uninstalling_a_plugin_turns_its_name_into_the_pip_line(site, builder):
    site.plugin("chip", builder.device_source("chip"), manifest=builder.device_manifest("chip"))
    assert Host().backend("chip").version == "1.0"
    site.remove("graphdock-chip")
    with pytest.raises(UnknownBackendError, match="pip install graphdock-chip"):
        Host().backend("chip")


def test_the_first_exception_is_the_cause_of_every_later_use(site):
    site.plugin("sick", "TIMES = []\nraise OSError('first')")
    host = Host()
    causes = []
    for _ in range(2):
        with pytest.raises(PluginError) as caught:
            host.backend("sick")
        causes.append(caught.value.__cause__)
    assert causes[0] is causes[1]
    assert str(causes[0]) == "first"
    assert "plugin 'sick' (graphdock-sick 1.0) can't be used: import failed: OSError: first" in str(caught.value)
    assert 'block = ["sick"]' in str(caught.value)


def test_a_plugin_that_fails_late_leaves_nothing_behind(site, builder):
    source = builder.device_source("half") + (
        "\nfrom graphdock.contracts import OpLibrary\n"
        "@hookimpl\n"
        "def register_ops(): return [OpLibrary('graphdock_half.opdefs')]\n"
        "@hookimpl\n"
        "def register_kernels(host):\n"
        "    host.kernels.add(KernelDef('Relu', 'half', lambda ctx: None), 'half', 'graphdock_half')\n"
        "    raise OSError('too late')\n"
    )
    site.plugin(
        "half",
        source,
        manifest=builder.device_manifest("half"),
        files={"opdefs.py": OPS.replace("{ns}", "half")},
    )
    host = Host()
    with pytest.raises(PluginError, match="too late"):
        host.backend("half")
    (half,) = (s for s in host.plugins() if s.name == "half")
    assert (half.hooks, half.module, half.done) == (None, None, {})
    assert host.devices.names() == []
    assert not list(host.kernels.all())
    assert "half.Fuse" not in host.ops
    assert host.ops.operator("__matmul_half__") is None


def test_a_plugin_that_fails_takes_back_only_its_own(site):
    op_plugin(site, "good")
    source = (
        "from graphdock.contracts import KernelDef, hookimpl\n"
        "@hookimpl\n"
        "def register_kernels(host):\n"
        "    assert 'good.Fuse' in host.ops\n"
        "    raise OSError('too late')\n"
    )
    site.plugin("bad", source)
    host = Host()
    with pytest.raises(PluginError, match="too late"):
        host.backend("bad")
    assert host.ops.get("good.Fuse").package == "graphdock_good"
    assert [k.full_name for k in host.kernels.for_op("good.Fuse")] == ["good.fuse"]
    assert host.ops.operator("__matmul_good__")(1, 2) == ("good", 1, 2)
    assert stages(host)["good"] == "registered"


def test_an_interrupt_while_a_plugin_loads_goes_through_and_the_plugin_may_be_tried_again(site, monkeypatch):
    monkeypatch.setattr(builtins, "GRAPHDOCK_INTERRUPT", True, raising=False)
    source = (
        "import builtins\n"
        "from graphdock.contracts import KernelDef, hookimpl\n"
        "@hookimpl\n"
        "def register_kernels():\n"
        "    if builtins.GRAPHDOCK_INTERRUPT: raise KeyboardInterrupt\n"
        "    return [KernelDef('Identity', 'cpu', lambda ctx: None)]\n"
    )
    site.plugin("slow", source)
    host = Host()
    with pytest.raises(KeyboardInterrupt):
        host.backend("slow")
    assert stages(host)["slow"] == "found"
    monkeypatch.setattr(builtins, "GRAPHDOCK_INTERRUPT", False)
    assert host.backend("slow").kernel_devices == ("cpu",)


def test_kernels_of_one_name_in_one_plugin_are_refused(site):
    source = (
        "from graphdock.contracts import KernelDef, hookimpl\n"
        "@hookimpl\n"
        "def register_kernels():\n"
        "    return [KernelDef('Identity', 'cpu', lambda ctx: None), KernelDef('Identity', 'cpu', lambda ctx: None)]\n"
    )
    site.plugin("doubled", source)
    with pytest.raises(PluginError, match="two kernels named 'doubled.identity' for Identity on cpu"):
        Host().backend("doubled")


def test_core_ops_are_there_with_every_plugin_blocked(site, builder):
    host = Host(block=builder.shipped())
    for name in ("Const", "Identity", "AddN", "While", "ReadVariableOp"):
        assert host.ops.get(name).package == "graphdock"
    assert stages(host) == {
        **dict.fromkeys(builder.shipped(), "blocked"),
        **dict.fromkeys(("cuda", "llvm", "onednn", "ray", "triton"), "found"),
    }


def test_core_ops_load_no_plugin(site):
    op_plugin(site, "extra")
    host = Host()
    host.ops.get("Const")
    assert set(stages(host).values()) == {"found"}


def test_an_op_is_found_without_naming_its_plugin_and_its_kernels_come_along(site):
    op_plugin(site, "extra")
    host = Host()
    opdef = host.ops.get("extra.Fuse")
    assert (opdef.name, opdef.package) == ("extra.Fuse", "graphdock_extra")
    assert host.ops.get("extra.Fuse") is opdef
    assert sys.modules["graphdock_extra.opdefs"].BUILT == ["fuse"]
    (kernel,) = host.kernels.for_op("extra.Fuse")
    assert (kernel.full_name, kernel.package) == ("extra.fuse", opdef.package)


def test_a_manifest_that_lists_its_ops_is_asked_first(site, builder):
    marker = "\n# Generated by `graphdock opgen manifest`. Do not edit below this line.\n"
    op_plugin(site, "aaa")
    op_plugin(site, "zzz", manifest=builder.MANIFEST.format(name="zzz") + marker + '[ops]\nnames = ["zzz.Fuse"]\n')
    host = Host()
    assert host.ops.get("zzz.Fuse").package == "graphdock_zzz"
    assert stages(host)["aaa"] == "found"


def test_a_manifest_that_lists_an_operator_is_asked_first(site, builder):
    marker = "\n# Generated by `graphdock opgen manifest`. Do not edit below this line.\n"
    lists = '[ops]\nnames = ["zzz.Fuse"]\noperators = ["__matmul_zzz__"]\n'
    op_plugin(site, "aaa")
    op_plugin(site, "zzz", manifest=builder.MANIFEST.format(name="zzz") + marker + lists)
    host = Host()
    assert host.ops.operator("__matmul_zzz__")(1, 2) == ("zzz", 1, 2)
    assert stages(host)["aaa"] == "found"


def test_an_operator_that_only_the_manifest_has_is_drift(site, builder):
    marker = "\n# Generated by `graphdock opgen manifest`. Do not edit below this line.\n"
    lists = '[ops]\nnames = ["zzz.Fuse"]\noperators = ["__floordiv__"]\n'
    op_plugin(site, "zzz", manifest=builder.MANIFEST.format(name="zzz") + marker + lists)
    host = Host()
    host.ops.names()
    (entry,) = [e for e in host.ledger if e.plugin == "zzz"]
    assert entry.stage == "manifest drift" and "operator __floordiv__ is only in the manifest" in entry.cause


def test_an_unknown_op_names_the_nearest_and_what_did_not_load(site):
    site.plugin("sick", "raise OSError('no chip')")
    with pytest.raises(UnknownOpError) as caught:
        Host().ops.get("Identty")
    assert caught.value.message == "no op named 'Identty'"
    assert "did you mean 'Identity'?" in caught.value.hint
    assert "plugin 'sick' did not load: import failed: OSError: no chip" in caught.value.hint


def test_names_lists_every_plugins_ops_and_operators_resolve(site):
    op_plugin(site, "extra")
    host = Host()
    assert {"extra.Fuse", "Const"} <= set(host.ops.names())
    assert host.ops.names() == sorted(host.ops.names())
    assert host.ops.operator("__matmul_extra__")(1, 2) == ("extra", 1, 2)
    assert host.ops.operator("__nothing__") is None


def test_an_op_of_a_name_that_exists_fails_its_plugin_alone(site):
    op_plugin(site, "one")
    op_plugin(site, "two", files={"opdefs.py": OPS.replace("{ns}", "one").replace("__matmul_one__", "__x__")})
    host = Host()
    host.ops.names()
    assert host.ops.get("one.Fuse").package == "graphdock_one"
    assert stages(host)["two"] == "hook failed"
    cause = next(e.cause for e in host.ledger if e.plugin == "two")
    assert "graphdock_two declares the op 'one.Fuse', which graphdock_one declares already" in cause


def test_ops_and_kernels_can_be_added_at_run_time(site):
    host = Host()
    opdef = OpDef("notebook.Double", package="notebook")
    host.ops.add(opdef, "notebook")
    host.ops.add(opdef, "notebook")
    assert host.ops.get("notebook.Double") == opdef
    with pytest.raises(AlreadyExistsError, match="notebook declares the op 'notebook.Double', which notebook"):
        host.ops.add(OpDef("notebook.Double", version=2), "notebook")
    added = host.kernels.add(KernelDef("notebook.Double", "cpu", lambda ctx: None), "user", "notebook")
    assert host.kernels.for_op("notebook.Double") == (added,)
    assert added.full_name == "user.double"


def test_two_hosts_share_nothing(site, builder):
    site.plugin("chip", builder.device_source("chip"), manifest=builder.device_manifest("chip"))
    first, second = Host(), Host()
    first.backend("chip")
    first.ops.add(OpDef("a.B"), "a")
    first.containers["x"] = 1
    assert stages(second)["chip"] == "found"
    assert "a.B" not in second.ops
    assert second.containers == {}
    assert second.devices.names() == []
    one, other = first.open_device("chip:0"), second.open_device("chip:0")
    assert one is not other
    assert first.open_device("chip:0") is one


# -- allow, block, autoload


def test_a_blocked_plugin_that_would_end_the_process_does_no_harm(site):
    site.plugin("killer", "import os\nos._exit(7)")
    host = Host(block=["killer"])
    assert "no.Op" not in host.ops
    with pytest.raises(PluginError, match="blocked"):
        host.backend("killer")
    script = "from graphdock.plugin.host import default_host as h; print(len(h().ops.names()) > 20)"
    environment = {"GRAPHDOCK_BLOCK": "graphdock-killer", "PYTHONPATH": str(site.folder), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_the_same_plugin_unblocked_does_end_the_process(site):
    site.plugin("killer", "import os\nos._exit(7)")
    script = "from graphdock.plugin.host import default_host as h; h().ops.names()"
    environment = {"PYTHONPATH": str(site.folder), "PATH": ""}
    assert subprocess.run([sys.executable, "-c", script], env=environment, check=False).returncode == 7


def test_allow_keeps_others_out_but_never_graphdocks_own(site):
    op_plugin(site, "yes")
    op_plugin(site, "no")
    host = Host(allow=["graphdock-yes"])
    assert "yes.Fuse" in host.ops
    assert "no.Fuse" not in host.ops
    assert stages(host)["no"] == "blocked"
    assert next(e.cause for e in host.ledger if e.plugin == "no") == "allow does not name it"
    assert stages(host)["cpu"] != "blocked"


def test_without_autoload_only_the_named_are_loaded(site):
    op_plugin(site, "extra")
    host = Host(autoload=False)
    assert "extra.Fuse" not in host.ops
    host.backend("extra")
    assert "extra.Fuse" in host.ops


# -- threads


def test_many_threads_load_a_plugin_once(site, monkeypatch):
    loads = []
    monkeypatch.setattr(builtins, "GRAPHDOCK_LOADS", loads, raising=False)
    op_plugin(
        site,
        "shared",
        source="import builtins\nbuiltins.GRAPHDOCK_LOADS.append(1)\n" + WITH_OPS.replace("{ns}", "shared"),
    )
    host, gate, found, errors = Host(), threading.Barrier(8), [], []

    def look():
        gate.wait()
        try:
            found.append(host.ops.get("shared.Fuse"))
        except UnknownOpError as error:
            errors.append(error)

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loads == [1]
    assert not errors
    assert len(found) == 8
    assert len({id(o) for o in found}) == 1


def test_a_plugin_may_ask_the_host_while_it_loads(site):
    source = (
        "from graphdock.contracts import KernelDef, hookimpl\n"
        "@hookimpl\n"
        "def register_kernels(host):\n"
        "    assert host.ops.get('Identity').name == 'Identity'\n"
        "    assert 'curious.Op' not in host.ops\n"
        "    return [KernelDef('Identity', 'cpu', lambda ctx: None)]\n"
    )
    site.plugin("curious", source)
    host = Host()
    host.backend("curious")
    assert stages(host)["curious"] == "registered"


def test_loading_is_traced_when_asked(site, monkeypatch, capsys):
    site.plugin("quiet")
    monkeypatch.setenv("GRAPHDOCK_TRACE_PLUGINS", "1")
    Host().backend("quiet")
    line = capsys.readouterr().err
    assert line.startswith("graphdock: quiet: register_devices, register_ops, register_kernels, ")
    assert ": nothing in " in line


# -- the default host


def test_the_default_host_is_made_at_first_use_from_the_settings(site, monkeypatch, tmp_path):
    monkeypatch.setattr(host_module, "_default", None)
    site.plugin("calm")
    (tmp_path / "work" / "graphdock.toml").write_text('[plugins]\nblock = ["calm"]\n')
    host = default_host()
    assert default_host() is host
    entry = next(e for e in host.ledger if e.plugin == "calm")
    assert (entry.stage, entry.cause) == ("blocked", "graphdock.toml:2")


def test_importing_graphdock_makes_no_host():
    script = "import graphdock, graphdock.plugin.host as h, sys; print(h._default, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "None False\n"


def test_running_a_program_imports_no_generator_and_no_terminal_library():
    script = (
        "import sys\nimport graphdock as tf\n"
        "x = tf.placeholder(tf.float32, [2])\n"
        "with tf.Session() as session:\n    session.run(tf.square(x) + 1.0, {x: [1, 2]})\n"
        "print([m for m in ('click', 'rich', 'jinja2', 'pydantic', 'yaml', 'graphdock_opgen') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_first_session_that_says_nothing_imports_neither_logging_nor_pathlib(tmp_path):
    program = (
        "import sys; before = set(sys.modules)\n"
        "import graphdock as tf\n"
        "x = tf.placeholder(tf.float32, [3])\n"
        "y = x + 1\n"
        "with tf.Session(config=tf.SessionConfig(backends=['cpu'], fusion=False)) as session:\n"
        "    session.run(y, {x: [1, 2, 3]})\n"
        "print({'logging', 'pathlib'} & (set(sys.modules) - before))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "set()"
