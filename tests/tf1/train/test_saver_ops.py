"""The operations of a Saver: TensorFlow's names, and the ops by themselves."""

from __future__ import annotations

import os

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.errors import DTypeError, InvalidArgumentError, NotFoundError, ShapeError
from graphdock_tf1.train.saveables import saveables_of
from graphdock_tf1.train.saver_ops import add_saver_ops


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def listing(graph, scope):
    return [(o.name, o.type) for o in graph.get_operations() if o.name.startswith(scope)]


def test_names_and_types_are_tensorflows(graph):
    """As tf.compat.v1.train.Saver() of TensorFlow 2.15 adds them; its Assign is AssignVariableOp here."""
    tf.get_variable("v", [3, 2])
    tf.Variable(tf.zeros([4]), name="w")
    tf.get_variable("p", [5, 2], partitioner=tf.fixed_size_partitioner(2))
    made = add_saver_ops(saveables_of(None), None, None, False, False, False)
    assert listing(graph, "save/") == [
        ("save/filename/input", "Const"),
        ("save/filename", "PlaceholderWithDefault"),
        ("save/Const", "PlaceholderWithDefault"),
        ("save/SaveV2/tensor_names", "Const"),
        ("save/SaveV2/shape_and_slices", "Const"),
        ("save/SaveV2", "SaveV2"),
        ("save/control_dependency", "Identity"),
        ("save/RestoreV2/tensor_names", "Const"),
        ("save/RestoreV2/shape_and_slices", "Const"),
        ("save/RestoreV2", "RestoreV2"),
        *((f"save/Assign{n}", "AssignVariableOp") for n in ("", "_1", "_2", "_3")),
        ("save/restore_all", "NoOp"),
    ]
    assert str(made) == (
        'filename_tensor_name: "save/Const:0"\nsave_tensor_name: "save/control_dependency:0"\n'
        'restore_op_name: "save/restore_all"\nversion: V2\n'
    )
    with tf.Session() as sess:
        names, slices = sess.run(["save/SaveV2/tensor_names:0", "save/SaveV2/shape_and_slices:0"])
    assert list(names) == [b"p", b"p", b"v", b"w"] and list(slices) == [b"5 2 0,3:0,2", b"5 2 3,2:0,2", b"", b""]


def test_sharded_ops(graph):
    tf.get_variable("v", [3])
    add_saver_ops(saveables_of(None), "x", None, False, True, False)
    types = [t for _, t in listing(graph, "x/") if t not in ("Const", "PlaceholderWithDefault")]
    saving = ["StringJoin", "ShardedFilename", "SaveV2", "Pack", "MergeV2Checkpoints", "Identity"]
    assert types == [*saving, "RestoreV2", "AssignVariableOp", "NoOp"]


def test_one_after_another_waits(graph):
    for name in "ab":
        tf.get_variable(name, [3])
    add_saver_ops(saveables_of(None), None, None, False, False, True)
    first, second = (o for o in graph.get_operations() if o.type == "RestoreV2")
    assign = graph.get_operation_by_name("save/Assign")
    assert assign.inputs[1].op is first and second.control_inputs == [assign]


def save(path, names, tensors, slices=None):
    return ops.apply_op(
        "SaveV2", prefix=path, tensor_names=names, shape_and_slices=slices or [""] * len(names), tensors=tensors
    )


def restore(path, names, dtypes, slices=None, **attrs):
    return ops.apply_op(
        "RestoreV2",
        prefix=path,
        tensor_names=names,
        shape_and_slices=slices or [""] * len(names),
        dtypes=dtypes,
        **attrs,
    )


def test_the_ops_by_themselves(tmp_path):
    path = str(tmp_path / "m")
    whole = np.arange(10.0).reshape(5, 2)
    with tf.Session() as sess:
        sess.run(save(path, ["w", "w", "s"], [whole[:3], whole[3:], [b"a", b""]], ["5 2 0,3:-", "5 2 3,2:-", ""]))
        w, s = restore(path, ["w", "s"], [tf.float64, tf.string], shapes=[[5, 2], None])
        assert w.shape == [5, 2] and s.shape.rank is None
        found = sess.run([w, s])
        assert found[0].tolist() == whole.tolist() and found[1].tolist() == [b"a", b""]
        part = restore(path, ["w"], [tf.float64], ["5 2 2,2:1,1"])
        assert sess.run(part[0] if isinstance(part, list | tuple) else part).tolist() == [[5], [7]]
        turned = restore(path, ["w"], [tf.float64], shapes=[[10]], reshape=True)
        assert sess.run(turned)[0].tolist() == whole.ravel().tolist()


@pytest.mark.parametrize(
    ("error", "words", "names", "dtypes", "more"),
    [
        (NotFoundError, "has no tensor 'v'", ["v"], [tf.float32], {}),
        (DTypeError, "'w' has another dtype", ["w"], [tf.int32], {}),
        (ShapeError, "'w' has another shape", ["w"], [tf.float32], {"shapes": [[3]]}),
        (ShapeError, "another number of elements", ["w"], [tf.float32], {"shapes": [[3]], "reshape": True}),
        (ShapeError, "'w' has another shape", ["w"], [tf.float32], {"slices": ["3 0,1"]}),
        (NotFoundError, r"has no tensor 'v'; nor .* of 'w', 'u'", ["v", "w", "u"], [tf.float32, tf.int32, tf.int8], {}),
        (InvalidArgumentError, "no shape and slice", ["w"], [tf.float32], {"slices": ["x 0,1"]}),
    ],
)
def test_what_does_not_fit_names_variable_and_path(tmp_path, error, words, names, dtypes, more):
    path = str(tmp_path / "m")
    with tf.Session() as sess:
        sess.run(save(path, ["w"], [tf.zeros([2])]))
        with pytest.raises(error, match=words) as caught:
            sess.run(restore(path, names, dtypes, **more))
    assert "RestoreV2" in caught.value.op.name
    if "slice" not in words:
        assert repr(path) in str(caught.value)


def test_numbers_of_names_and_tensors_agree(tmp_path):
    with pytest.raises(InvalidArgumentError, match="another number of tensors"):
        save("m", ["a", "b"], [tf.zeros([1])])
    with pytest.raises(InvalidArgumentError, match="1 shapes for 2 tensors"):
        restore("m", ["a", "b"], [tf.float32, tf.int32], shapes=[[1]])


def test_a_name_that_is_no_ascii_and_a_path_too(tmp_path):
    path = str(tmp_path / "größe")
    with tf.Session() as sess:
        sess.run(save(path, ["ü/w"], [tf.ones([1])]))
        assert sess.run(restore(path, ["ü/w"], [tf.float32]))[0].tolist() == [1]
    assert os.path.exists(path + ".index")
