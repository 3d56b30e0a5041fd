"""Formats of files that plugins bring: who is asked, who is imported for it, and what is said where nobody has one."""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import graphdock as tf
import pytest
from click.testing import CliRunner
from graphdock.cli import cli
from graphdock.contracts import CheckpointFormat, GraphFormat, GraphRead, ImportReport, hookimpl
from graphdock.errors import InvalidArgumentError, PluginError, UnavailableError, UnimplementedError, UnknownOpError
from graphdock.plugin import discovery
from graphdock.plugin.host import Host

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tests" / "packages" / "graphdock-edges"
TEXT = "# edges\nx = Placeholder()\ny = Relu(x:0)\nz = Add(y:0, x:0)\n"


def plug(host, name, **hooks):
    """A plugin of a host whose hooks return these."""

    class Plugin:
        pass

    for hook, items in hooks.items():
        setattr(Plugin, hook, hookimpl(staticmethod(lambda items=items: items)))
    return host.register(name, Plugin())


class Form(GraphFormat):
    summary = "texts of one kind"

    def __init__(self, name, accepts=lambda value: False, data=None):
        self.name, self._accepts, self._data = name, accepts, data

    def accepts(self, value):
        return self._accepts(value)

    def read(self, value, ops, mapped=(), outputs=()):
        return GraphRead(self._data, ImportReport())


@pytest.fixture
def edges(site, monkeypatch):
    """The package, installed; nothing of it is imported."""
    monkeypatch.syspath_prepend(str(PACKAGE / "src"))
    site.project(PACKAGE)
    host = Host()
    monkeypatch.setattr("graphdock.plugin.host._default", host)
    with tf.Graph().as_default():
        yield host
    for name in [n for n in sys.modules if n.startswith("graphdock_edges")]:
        del sys.modules[name]


def test_the_package_is_what_the_page_makes():
    page = (ROOT / "docs" / "write-a-file-format.md").read_text()
    made = dict(re.findall(r"<!-- file: graphdock-edges/(\S+) -->\n```\w+\n(.*?)```\n", page, re.S))
    there = {
        p.relative_to(PACKAGE).as_posix(): p.read_text() for p in PACKAGE.rglob("*") if p.suffix in (".py", ".toml")
    }
    assert made == there


def test_a_graph_of_a_third_partys_form_is_read_run_and_written(edges):
    assert "graphdock_edges.form" not in sys.modules
    (z,) = tf.import_graph_def(TEXT, return_elements=["z:0"], name="")
    with tf.Session() as sess:
        assert sess.run(z, {"x:0": [1.0, -2.0]}).tolist() == [2.0, -2.0]
    assert tf.get_default_graph().as_graph_def(form="edges") == TEXT
    assert [n.op for n in tf.get_default_graph().as_graph_def().node] == ["Placeholder", "Relu", "Add"]


def test_a_plugin_is_imported_when_a_graph_may_be_its(edges):
    """graphdock's own JSON and plain data are nobody else's."""
    tf.constant(1.0)
    text = tf.get_default_graph().to_json()
    for own in (text, text.encode()):
        tf.import_graph_def(own)
    assert "graphdock_edges.plugin" not in sys.modules
    with pytest.raises(InvalidArgumentError, match="not JSON"):
        tf.import_graph_def("nonsense")
    assert "graphdock_edges.plugin" in sys.modules


def test_what_is_missing_is_reported_and_left_out_when_asked(edges):
    text = TEXT + "a = NoSuchOp(z:0)\nb = Relu(a:0)\n"
    with pytest.raises(UnknownOpError, match="NoSuchOp: a"):
        tf.import_graph_def(text)
    assert tf.get_default_graph().get_operations() == []
    tf.import_graph_def(text, name="", allow_missing=True)
    assert [op.name for op in tf.get_default_graph().get_operations()] == ["x", "y", "z"]


def test_what_a_format_says_is_checked_as_any_file(edges):
    with pytest.raises(InvalidArgumentError, match="Relu"):
        tf.import_graph_def("# edges\ny = Relu()\n")
    assert tf.get_default_graph().get_operations() == []


def test_the_command_takes_files_of_it(edges, tmp_path):
    (tmp_path / "g.edges").write_text(TEXT)
    done = CliRunner().invoke(cli, ["import", str(tmp_path / "g.edges"), "--to", str(tmp_path / "g.json")])
    assert done.exit_code == 0 and "list of edges of 3 nodes: 3 imported" in done.output
    tf.import_graph_def((tmp_path / "g.json").read_text(), name="")
    assert tf.get_default_graph().as_graph_def(form="edges") == TEXT


def test_formats_are_asked_in_the_order_of_names_and_one_name_is_one_plugins():
    host = Host(autoload=False)
    asked = []
    first = {"graphdock_graph": 1, "nodes": [{"name": "first", "op": "NoOp"}]}
    plug(host, "one", register_graph_formats=[Form("b", lambda v: asked.append("b") or True, first)])
    plug(host, "two", register_graph_formats=[Form("a", lambda v: asked.append("a")), Form("c", asked.append)])
    with tf.Graph(host=host).as_default() as graph:
        tf.import_graph_def("text", name="")
        assert asked[:2] == ["a", "b"] and "c" not in asked and graph.get_operation_by_name("first")
        with pytest.raises(UnimplementedError, match="read from b, and not written"):
            graph.as_graph_def(form="b")
        with pytest.raises(InvalidArgumentError, match="from_version"):
            graph.as_graph_def(1, form="b")
        with pytest.raises(UnavailableError, match="no installed plugin has the graph format 'bb'") as caught:
            graph.as_graph_def(form="bb")
        assert "a, b, c" in caught.value.expected and "'b'" in caught.value.hint
    with pytest.raises(PluginError, match="graph format 'b'"):
        plug(host, "three", register_graph_formats=[Form("b")])
    with pytest.raises(PluginError, match="register_graph_formats returned a wrong item"):
        plug(host, "four", register_graph_formats=["b"])
    with pytest.raises(PluginError, match="register_checkpoint_formats returned a wrong item"):
        plug(host, "five", register_checkpoint_formats=[Form("d")])
    assert [f.name for f in host.graph_formats.all()][-3:] == [
        "a",
        "b",
        "c",
    ] or "GraphDef" in host.graph_formats.names()


def test_formats_are_asked_under_no_lock_of_the_hosts_or_the_graphs(tmp_path):
    """What another thread asks of host and graph meanwhile is answered."""
    host = Host()
    graph = tf.Graph(host=host)
    answered = []

    def elsewhere():
        def ask():
            with graph.as_default():
                tf.constant(1.0)
            return len(host.plugins())

        with ThreadPoolExecutor(1) as pool:
            answered.append(pool.submit(ask).result(60))

    class Slow(Form):
        def accepts(self, value):
            elsewhere()
            return value == "slow"

        def read(self, value, ops, mapped=(), outputs=()):
            elsewhere()
            return super().read(value, ops, mapped, outputs)

        def write(self, graph, add_shapes=False):
            elsewhere()

    class Files(CheckpointFormat):
        name = "files"

        def exists(self, prefix):
            elsewhere()
            return False

        def open(self, prefix):
            raise AssertionError("it does not exist")

    plug(host, "slow", register_graph_formats=[Slow("a", data={"graphdock_graph": 1, "nodes": []})])
    plug(host, "files", register_checkpoint_formats=[Files()])
    with graph.as_default():
        tf.import_graph_def("slow")
        graph.as_graph_def(form="a")
        assert not tf.train.checkpoint_exists(str(tmp_path / "none"))
    assert len(answered) == 4


def test_without_the_plugin_of_a_format_it_says_what_to_install(monkeypatch):
    installed = discovery.discover()
    monkeypatch.setattr("graphdock.plugin.host.discover", lambda: [f for f in installed if f.plugin != "tensorflow"])
    with tf.Graph(host=Host()).as_default() as graph:
        message = SimpleNamespace(SerializeToString=lambda: b"")
        for ask in (graph.as_graph_def, graph.to_json, lambda: tf.import_graph_def(tf.GraphDef())):
            with pytest.raises(UnavailableError, match="pip install --force-reinstall graphdock"):
                ask()
        with pytest.raises(UnavailableError, match="reads a graph from a SimpleNamespace"):
            tf.import_graph_def(message)


def test_a_plugin_that_fails_is_named_where_its_format_is_missed(site):
    host = Host()

    class Torn:
        @hookimpl
        def register_checkpoint_formats(self):
            raise RuntimeError("no such library")

    with pytest.raises(PluginError, match="no such library"):
        host.register("torn", Torn())
    with pytest.raises(UnavailableError, match="torn"):
        host.checkpoint_formats.find("torn")
    assert all(isinstance(f, CheckpointFormat) for f in host.checkpoint_formats.all())
