"""tf.load_op_library: ops of a YAML file without a package."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.errors import AlreadyExistsError, GradientError, OpSpecError
from graphdock.graph.graph import Graph
from graphdock.plugin.host import Host, default_host
from graphdock_opgen.load_op_library import load_op_library

SPEC = """\
graphdock_opdef: 1
namespace: NAMESPACE
ops:
- name: AddTwice
  summary: x + 2 y.
  types: {T: {allow: floats}}
  inputs: [{name: x, dtype: T, shape: "[*S]"}, {name: y, dtype: T, shape: "[*S]"}]
  outputs: [{name: z, dtype: T, shape: "[*S]"}]
  gradient: {inputs: {x: "g.z", y: {fn: twice}}}
"""


def load(tmp_path: Path, namespace: str):
    path = tmp_path / f"{namespace}.yaml"
    path.write_text(SPEC.replace("NAMESPACE", namespace))
    return load_op_library(path)


def test_wrappers_infer_shapes_and_name_the_op(tmp_path: Path) -> None:
    library = load(tmp_path, "mem1")
    assert library.ops == ["mem1.AddTwice"]
    with Graph().as_default():
        x = ops.convert_to_tensor([[1.0, 2.0]])
        z = library.add_twice(x, x, name="z")
    assert (z.op.type, z.op.name, z.shape.as_list()) == ("mem1.AddTwice", "z", [1, 2])
    with Graph().as_default(), pytest.raises(ValueError, match=r"\[2\] and \[3\]"):
        library.add_twice(ops.convert_to_tensor([1.0, 2.0]), ops.convert_to_tensor([1.0, 2.0, 3.0]))


def test_a_hand_written_gradient_is_assigned(tmp_path: Path) -> None:
    library = load(tmp_path, "mem2")
    opdef = default_host().ops.get("mem2.AddTwice")
    module, _, name = opdef.gradient.partition(":")
    function = getattr(__import__("sys").modules[module], name)
    with pytest.raises(GradientError, match="'twice', which nobody has given yet"):
        function(None, 1.0)
    library.gradients.twice = lambda op, grad: grad * 2
    assert function(None, 3.0) == [3.0, 6.0]


def test_tracebacks_show_generated_lines(tmp_path: Path) -> None:
    library = load(tmp_path, "mem3")
    file = library.add_twice.__code__.co_filename
    assert "def add_twice(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:\n" in linecache.getlines(
        file
    )


def test_faults_and_clashes(tmp_path: Path) -> None:
    first = load(tmp_path, "mem4")
    assert load(tmp_path, "mem4") is first
    (tmp_path / "mem4.yaml").write_text(
        SPEC.replace("NAMESPACE", "mem4").replace("- name: AddTwice", "- name: AddTwice\n  version: 2")
    )
    second = load_op_library(tmp_path / "mem4.yaml")
    assert second is not first and default_host().ops.get("mem4.AddTwice").version == 2
    (tmp_path / "other.yaml").write_text((tmp_path / "mem4.yaml").read_text())
    with pytest.raises(AlreadyExistsError, match=r"mem4\.AddTwice"):
        load_op_library(tmp_path / "other.yaml")
    bad = tmp_path / "bad.yaml"
    bad.write_text(SPEC.replace("NAMESPACE", "mem5").replace("g.z", "g.zz"))
    with pytest.raises(OpSpecError, match=r"bad\.yaml:9:27: no output named 'zz'"):
        load_op_library(bad)
    assert "mem5.AddTwice" not in default_host().ops


@pytest.mark.parametrize("stem", ["alpha", "zeta", "gradients", "opdefs", "class", "1", "a-b.c"])
def test_a_gradient_may_use_another_op_whatever_the_file_is_called(tmp_path: Path, stem: str) -> None:
    """Generated modules import one another; their names, which come of the file's, decide nothing."""
    namespace = f"mem_{abs(hash(stem)) % 10**8}"
    path = tmp_path / f"{stem}.yaml"
    other = SPEC.partition("- name:")[2].replace("AddTwice", "Other", 1).replace("{fn: twice}", "g.z")
    path.write_text(
        (SPEC + "- name:" + other).replace('x: "g.z"', 'x: "other(g.z, g.z)"').replace("NAMESPACE", namespace)
    )
    library = load_op_library(path)
    library.gradients.twice = lambda op, grad: grad
    with Graph().as_default():
        x = ops.convert_to_tensor([1.0])
        (dx,) = tf.gradients(library.add_twice(x, tf.stop_gradient(x)), [x])
    assert dx.op.type == f"{namespace}.Other"


def test_a_library_that_does_not_load_leaves_nothing(tmp_path: Path) -> None:
    load(tmp_path, "mem7")
    before = set(sys.modules)
    (tmp_path / "again.yaml").write_text(SPEC.replace("NAMESPACE", "mem7"))
    with pytest.raises(AlreadyExistsError):
        load_op_library(tmp_path / "again.yaml")
    assert set(sys.modules) == before


def test_an_op_a_kernel_and_a_gradient_without_a_package(tmp_path: Path) -> None:
    """The slides' listing: load the library, register the kernel, run."""
    library = load(tmp_path, "mem6")
    library.gradients.twice = lambda op, grad: grad * 2.0

    @ops.RegisterKernel("mem6.AddTwice", device="cpu", compute=True)
    def add_twice(x, y, z):
        np.add(x, 2 * y, z)

    with Graph().as_default() as graph:
        x, y = tf.constant([1.0, 2.0]), tf.constant([10.0, 20.0])
        z = library.add_twice(x, y)
        dx, dy = tf.gradients(z, [x, y])
        with tf.Session(graph=graph) as session:
            got = session.run([z, dx, dy])
    np.testing.assert_array_equal(got, [[21.0, 42.0], [1.0, 1.0], [2.0, 2.0]])


def test_ops_and_kernels_belong_to_the_host_of_the_default_graph(tmp_path: Path) -> None:
    host = Host()
    with Graph(host).as_default():
        library = load(tmp_path, "mem_host")

        @ops.RegisterKernel("mem_host.AddTwice", device="cpu", compute=True)
        def add_twice(x, y, z):
            np.add(x, 2 * y, out=z)

        made = library.add_twice(tf.constant([1.0]), tf.constant([2.0]))
        with tf.Session() as sess:
            assert sess.run(made).tolist() == [5.0]
    assert "mem_host.AddTwice" not in default_host().ops
    host.close()


def test_a_misspelt_name_of_a_library_is_told_the_nearest(tmp_path: Path) -> None:
    library = load(tmp_path, "mem_near")
    with pytest.raises(
        AttributeError, match=r"the op library '.*\.yaml' has no 'add_twic'; did you mean 'add_twice'\?"
    ):
        library.add_twic  # noqa: B018
    assert not hasattr(library, "_nothing")
