"""Files of a SavedModel: none is lost, whatever they are called, and each tensor gets its own."""

from __future__ import annotations

import os

import graphdock as tf
import pytest
from graphdock.errors import DataLossError, GraphdockError

pytest.importorskip("google.protobuf")


@pytest.fixture
def model(tmp_path):
    """Writes a SavedModel with these assets, a list of paths for each graph; returns its folder."""

    def write(*graphs, damage=None):
        folder = str(tmp_path / f"model{len(os.listdir(tmp_path))}")
        builder = tf.saved_model.builder.SavedModelBuilder(folder)
        for number, paths in enumerate(graphs):
            with tf.Graph().as_default(), tf.Session() as sess:
                assets = [tf.constant(os.fsencode(p), name=f"asset_{i}") for i, p in enumerate(paths)]
                seen = tf.get_local_variable("seen", [len(paths)], tf.string, tf.constant_initializer("unset"))
                first = tf.group(seen.assign(tf.stack(assets)), name="first")
                add = builder.add_meta_graph if number else builder.add_meta_graph_and_variables
                given = () if number else (sess,)
                add(*given, [f"graph{number}"], assets_collection=assets, main_op=first)
        if damage is not None:
            damage(builder._saved.meta_graphs[0])
        builder.save()
        return folder

    return write


def loaded(folder, tag):
    """What each asset tensor of a graph names, and what is in that file."""
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.saved_model.load(sess, [tag], folder)
        paths = sess.run("seen:0").tolist()
    assert all(os.path.dirname(p) == os.path.join(os.fsencode(folder), b"assets") for p in paths)
    return [os.path.basename(p).decode() for p in paths], [open(p, "rb").read() for p in paths]


@pytest.fixture
def file(tmp_path):
    def write(path, data):
        made = tmp_path / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_bytes(data)
        return str(made)

    return write


def test_two_files_of_one_name_are_two_files(model, file):
    """The names are those that TensorFlow gives; where it copies a file twice, or loses one of another graph, one is kept."""
    first, second = file("a/words.txt", b"one"), file("b/words.txt", b"two")
    third, same = file("c/words.txt", b"three"), file("d/words.txt", b"two")
    folder = model([first, second, first, third, same], [file("e/words.txt", b"five"), first])
    names, data = loaded(folder, "graph0")
    assert data == [b"one", b"two", b"one", b"three", b"two"]
    assert names == ["words.txt", "words.txt_1", "words.txt", "words.txt_2", "words.txt_1"]
    assert loaded(folder, "graph1") == (["words.txt_3", "words.txt"], [b"five", b"one"])
    assert sorted(os.listdir(folder + "/assets")) == ["words.txt", "words.txt_1", "words.txt_2", "words.txt_3"]


def test_a_file_that_has_the_name_of_a_numbered_one(model, file):
    paths = [file("a/x_1", b"one"), file("a/x", b"two"), file("b/x", b"three"), file("b/x_1", b"four")]
    folder = model([*paths, paths[0]])
    assert loaded(folder, "graph0")[1] == [b"one", b"two", b"three", b"four", b"one"]


def test_files_that_cannot_be_assets(model, file, tmp_path):
    for path in (str(tmp_path / "nothing"), str(tmp_path), os.fsdecode(b"\xff")):
        with pytest.raises(GraphdockError, match="cannot copy|name of an asset"):
            model([path])


@pytest.mark.parametrize("value", [b"\xff", b"\x12\x7f", b"\x0a\x03\x0a\x05x", b"\x12\x02\xff\xff", b"\x0b" * 300])
def test_a_damaged_collection_of_assets_is_said(model, file, value):
    def damage(graph):
        del graph.asset_file_def[:]
        graph.collection_def["saved_model_assets"].any_list.value[0].value = value

    folder = model([file("words.txt", b"one")], damage=damage)
    with pytest.raises(DataLossError, match="an asset of the SavedModel"):
        loaded(folder, "graph0")


@pytest.mark.parametrize("name", ["first:0", "asset_0:7", "seen:0"])
def test_an_asset_that_is_no_tensor_of_text_is_refused(model, file, name):
    def damage(graph):
        graph.asset_file_def[0].tensor_info.name = name

    folder = model([file("words.txt", b"one")], damage=damage)
    with tf.Graph().as_default(), tf.Session() as sess, pytest.raises(GraphdockError):
        tf.saved_model.load(sess, ["graph0"], folder)


def test_a_model_with_files_is_loaded_without_a_warning(model, file, caplog):
    names, _ = loaded(model([file("a/words.txt", b"one"), file("b/words.txt", b"two")]), "graph0")
    assert len(names) == 2 and not caplog.records
