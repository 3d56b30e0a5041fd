"""What an installation without some of graphdock's plugins says of the names that they would bring."""

import subprocess
import sys
import tomllib
from collections import Counter

import graphdock as tf
import pytest
from click.testing import CliRunner
from graphdock.cli import cli
from graphdock.errors import KernelNotFoundError, UnavailableError
from graphdock.plugin import discovery
from graphdock.plugin.endpoints import read_table
from graphdock.plugin.host import Host
from graphdock.plugin.left_out import TABLE, who_brings


def test_the_table_is_what_the_manifests_say():
    own = [s for s in Host().plugins() if s.found.is_own and s.manifest is not None]
    commands = {s.name: [c.name for c in s.manifest.commands] for s in own if s.manifest.commands}
    names = {s.name: {name.partition(".")[0] for name in read_table(s)} for s in own}
    count = Counter(name for found in names.values() for name in found)
    alone = {plugin: sorted(n for n in found if count[n] == 1) for plugin, found in names.items() if plugin != "std"}
    table = tomllib.loads(TABLE.read_text())
    assert table["commands"] == commands
    assert table["names"] == {plugin: found for plugin, found in alone.items() if found}
    below = {s.name: sorted(name[4:] for name in read_table(s) if name.startswith("ops.")) for s in own}
    assert table["ops"] == {plugin: found for plugin, found in below.items() if found and plugin != "std"}
    host_ops = {s.name: sorted({k.op for k in s.kernel_rows}) for s in own if s.kernel_rows and not s.manifest.devices}
    assert table["kernels"] == host_ops
    assert table["packages"].items() <= {s.name: [s.found.package] for s in own}.items()
    assert table["graph"] == {"tensorflow": [f.name for f in Host().graph_formats.all()]}
    assert table["checkpoint"] == {"tensorflow": [f.name for f in Host().checkpoint_formats.all()]}


def test_a_command_of_a_plugin_that_is_left_out_says_what_to_install(monkeypatch):
    installed = discovery.discover()
    monkeypatch.setattr("graphdock.plugin.host.discover", lambda: [f for f in installed if f.plugin != "opgen"])
    done = CliRunner().invoke(cli, ["new", "plugin", "lab"])
    assert done.exit_code == 2
    assert "no command 'new'; it is brought by the plugin 'opgen', which this installation leaves out" in done.stderr
    assert "pip install" in done.stderr


def test_nobody_brings_a_name_that_is_misspelt():
    assert who_brings("commands", "opgn", Host().plugins()) is None


def test_a_plugin_that_is_here_but_blocked_is_not_to_be_installed(monkeypatch):
    said = who_brings("names", "profiler", Host(block=["profiler"]).plugins())
    assert said == "it is brought by the plugin 'profiler', which can't be used: blocked: block names 'profiler'"
    assert who_brings("names", "profiler", Host().plugins()) is None
    monkeypatch.setenv("GRAPHDOCK_BLOCK", "opgen")
    done = CliRunner().invoke(cli, ["new", "plugin", "lab"])
    assert done.exit_code == 2 and "which can't be used: blocked: GRAPHDOCK_BLOCK" in done.stderr


def test_a_name_whose_module_needs_a_plugin_that_is_left_out_says_what_to_install():
    program = """if True:
        import sys
        sys.modules["graphdock_storage"] = None  # as if it was not there
        import graphdock as tf
        tf.train.AdagradOptimizer(0.1)
        tf.summary.scalar("loss", 1.0)
        for ask in (lambda: tf.train.Saver, lambda: tf.summary.FileWriter, lambda: tf.train.latest_checkpoint):
            try:
                ask()
            except tf.errors.UnavailableError as error:
                assert "needs graphdock_storage" in str(error) and "plugin 'storage'" in error.hint, error
                assert "pip install --force-reinstall graphdock" in error.hint, error
            else:
                raise AssertionError("it is not there")
    """
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_plugin_of_a_format_or_a_kernel_that_is_blocked_is_not_to_be_installed():
    host = Host(block=["tensorflow", "storage"])
    with tf.Graph(host=host).as_default() as graph, tf.Session(host=host) as sess:
        with pytest.raises(UnavailableError, match="blocked: block names 'tensorflow'"):
            graph.as_graph_def()
        with pytest.raises(KernelNotFoundError, match="blocked: block names 'storage'"):
            sess.run(tf.summary.scalar("a", tf.placeholder_with_default(1.0, [])))
