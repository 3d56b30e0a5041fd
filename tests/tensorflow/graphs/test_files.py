"""Files of graphs are told apart, and the command that reads them says what is in them."""

from __future__ import annotations

import json

import graphdock as tf
import pytest
from click.testing import CliRunner
from graphdock.cli import cli
from graphdock.errors import DataLossError, InvalidArgumentError, NotFoundError
from graphdock.messages import make, to_text
from graphdock_tensorflow.graphs.files import choose, graph_of, read_message, read_saved_model, write_message


@pytest.fixture
def simple(made):
    made.node("x", "Placeholder", dtype=tf.float32)
    made.node("y", "Neg", "x", T=tf.float32)
    return made


@pytest.mark.parametrize("as_text", [True, False])
def test_bytes_and_text_are_told_apart(simple, tmp_path, as_text):
    path = write_message(simple.message, str(tmp_path / "new" / "g.pb"), as_text)
    assert read_message("GraphDef", path) == simple.message == graph_of(path)[1]
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["g.pb"]


def test_the_kinds_of_files(simple, tmp_path):
    meta = make("MetaGraphDef", graph_def=simple.message)
    saved = make("SavedModel", meta_graphs=[meta, meta])
    saved.meta_graphs[0].meta_info_def.tags.append("serve")
    write_message(meta, str(tmp_path / "m.meta"), False)
    write_message(saved, str(tmp_path / "folder" / "saved_model.pbtxt"), True)
    assert graph_of(str(tmp_path / "m.meta")) == ("MetaGraphDef", simple.message)
    assert graph_of(str(tmp_path / "folder"), ("serve",)) == ("SavedModel", simple.message)
    assert graph_of(str(tmp_path / "folder" / "saved_model.pbtxt"), ("serve",))[0] == "SavedModel"
    with pytest.raises(InvalidArgumentError, match="several graphs") as error:
        choose(read_saved_model(str(tmp_path / "folder")), (), "folder")
    assert "serve" in error.value.expected


def test_foreign_files_say_what_they_are_not(simple, tmp_path):
    with pytest.raises(NotFoundError, match="cannot read"):
        graph_of(str(tmp_path / "none.pb"))
    with pytest.raises(NotFoundError, match="holds no SavedModel"):
        graph_of(str(tmp_path))
    for name, data, words in (
        ("a.pb", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "damaged"),
        ("c.pbtxt", b"hello there", "no text of a GraphDef"),
        ("d.meta", b"\xff" * 30, "no MetaGraphDef"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(DataLossError, match=words):
            graph_of(str(tmp_path / name))


def invoke(*args):
    return CliRunner().invoke(cli, ["import", *map(str, args)])


def test_the_command_writes_graphdocks_own_form(simple, tmp_path):
    path = write_message(simple.message, str(tmp_path / "g.pb"), False)
    result = invoke(path, "--to", tmp_path / "g.json")
    assert result.exit_code == 0 and "GraphDef of 2 nodes: 2 imported." in result.output
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def((tmp_path / "g.json").read_text(), name="")
        assert sess.run("y:0", {"x:0": 2.0}) == -2


def test_the_command_says_what_is_missing(simple, tmp_path):
    simple.node("z", "NoSuchOp", "y")
    simple.node("last", "Neg", "z", T=tf.float32)
    (tmp_path / "g.pbtxt").write_text(to_text(simple.message))
    result = invoke(tmp_path / "g.pbtxt")
    assert result.exit_code == 1 and "NoSuchOp" in result.output and "missing, as z" in result.output
    assert "2 imported, 2 left out" in result.output
    found = json.loads(invoke(tmp_path / "g.pbtxt", "--json").output)
    assert found["missing"] == [{"op": "NoSuchOp", "why": "no such op", "nodes": ["z"]}] and found["left_out"] == 2
    assert invoke(tmp_path / "g.pbtxt", "--outputs", "y:0").exit_code == 0
    result = invoke(tmp_path / "g.pbtxt", "--outputs", "yy")
    assert result.exit_code == 2 and "did you mean 'y'" in result.output


def test_the_command_reads_what_it_writes(tmp_path):
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")
        with tf.control_dependencies([tf.Assert(tf.reduce_all(x > 0.0), [x], name="check")]):
            y = tf.negative(x, name="y")
        tf.exp(y, name="spare")
        (tmp_path / "g.json").write_text("\n " + graph.to_json())
    whole = json.loads(invoke(tmp_path / "g.json", "--json").output)
    assert whole["kind"] == "graphdock's JSON" and whole["nodes"] == whole["imported"] == len(graph.get_operations())
    result = invoke(tmp_path / "g.json", "--outputs", "y:0", "--to", tmp_path / "needed.json")
    assert result.exit_code == 0, result.output
    with tf.Graph().as_default() as needed, tf.Session() as sess:
        tf.import_graph_def((tmp_path / "needed.json").read_text(), name="")
        assert sess.run("y:0", {"x:0": [2.0, 3.0]}).tolist() == [-2, -3]
        with pytest.raises(InvalidArgumentError):  # it waits for the check
            sess.run("y:0", {"x:0": [2.0, -3.0]})
    assert {op.name for op in graph.get_operations()} - {op.name for op in needed.get_operations()} == {"spare"}
    result = invoke(tmp_path / "g.json", "--outputs", "why")
    assert result.exit_code == 2 and "the graph has no node 'why'" in result.output
    (tmp_path / "g.json").write_text('{"graphdock_graph": 1, "nodes": [')
    assert "not JSON" in invoke(tmp_path / "g.json").output
    (tmp_path / "g.json").write_text('{"graphdock_graph": 1, "nodes": [{"name": "a", "op": "NoOp", "inputs": [3]}]}')
    result = invoke(tmp_path / "g.json", "--outputs", "a")
    assert result.exit_code and "a: inputs" in result.output + str(result.exception)
