"""Notebooks, run with the real kernel of Jupyter: edited cells take the place of what they made, and results are pictures."""

from __future__ import annotations

import re

import pytest

nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
nbformat = pytest.importorskip("nbformat")

KERNEL = """\
@ops.RegisterKernel("Square", device="cpu", label="mine", compute=True)
def in_a_cell(x):
    return x * x + {0}
"""
USE = """\
sess = tf.Session(config=tf.SessionConfig(kernels={"Square@cpu": "user.in_a_cell"}))
y = tf.square(tf.placeholder(tf.float32, [1], name="x"))
"""
OP = """\
@tf.custom_op("lab::shift", shapes={{"x": "[*S]", "y": "[*S]"}}, outputs=["y"])
def shift{1}(x: NDArray[np.float32], by: float = {0}) -> NDArray[np.float32]:
    return x + np.float32(by)
"""
SPEC = """\
%%writefile lib.yaml
graphdock_opdef: 1
namespace: nb
ops:
- name: Plus
  summary: x plus a number.
  types: {{T: {{allow: [float32]}}}}
  attrs: [{{name: by, type: float, default: {0}, doc: What is added.}}]
  inputs: [{{name: x, dtype: T, shape: "[*S]"}}]
  outputs: [{{name: y, dtype: T, shape: "[*S]"}}]
  gradient: {{inputs: {{x: "g.y"}}}}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs cells in one kernel, which lives as long as the module's tests, and returns what the last one shows."""
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.v4.new_notebook()
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    with client.setup_kernel(env={**__import__("os").environ, "JUPYTER_PLATFORM_DIRS": "1"}):

        def run(*cells, fails=False):
            for text in cells:
                cell = nbformat.v4.new_code_cell(text)
                notebook.cells.append(cell)
                try:
                    client.execute_cell(cell, len(notebook.cells) - 1)
                except nbclient.exceptions.CellExecutionError as error:
                    if fails:
                        return re.sub(r"\x1b\[[0-9;]*m", "", str(error))
                    raise
            assert not fails, "the last cell raised nothing"
            return cell.outputs

        run("import graphdock as tf\nimport numpy as np\nfrom graphdock import ops\nfrom numpy.typing import NDArray")
        yield run


def value(outputs):
    (output,) = outputs
    return output["data"]["text/plain"]


def test_an_edited_kernel_takes_the_place_of_the_one_before(run):
    step = "sess.run(y, {'x:0': [3.0]}).tolist()"
    assert value(run(KERNEL.format(0), USE, step)) == "[9.0]"
    assert value(run(KERNEL.format(1), step)) == "[10.0]", "the session that was there plans anew"
    assert value(run(KERNEL.format(1), step)) == "[10.0]"


def test_an_edited_op_takes_the_place_of_the_one_before_and_old_graphs_keep_theirs(run):
    run(OP.format(1.0, ""), "old = tf.Graph()", "with old.as_default():\n    z = shift(tf.constant([1.0]))")
    run("before = shift", "old_session = tf.Session(graph=old)")
    assert value(run("old_session.run(z).tolist()")) == "[2.0]"
    body = OP.format(5.0, "_edited").replace("x + np", "10 * x + np")
    run(body)
    assert (
        value(
            run(
                "with tf.Graph().as_default(), tf.Session() as s:\n    r = s.run(shift_edited(tf.constant([1.0]))).tolist()\nr"
            )
        )
        == "[15.0]"
    )
    assert value(run("old_session.run(z).tolist()")) == "[2.0]", "a graph that was made before keeps what it had"
    assert value(run("tf.Session(graph=old).run(z).tolist()")) == "[2.0]"
    said = run("before(tf.constant([1.0]))", fails=True)
    assert "lab::shift of " in said and "was replaced by" in said


def test_an_op_of_another_place_stays_an_error(run):
    run(
        "%%writefile elsewhere.py\nimport graphdock as tf\nimport numpy as np\nfrom numpy.typing import NDArray\n\n"
        '@tf.custom_op("lab::once", shapes={"x": "[*S]", "y": "[*S]"}, outputs=["y"])\n'
        "def once(x: NDArray[np.float32]) -> NDArray[np.float32]:\n    return x\n"
    )
    run("import elsewhere")
    cell = OP.format(1.0, "").replace("lab::shift", "lab::once")
    said = run(cell, fails=True)
    assert (
        "lab::once is defined already, at " in said
        and "elsewhere.py" in said
        and "give one of them another name" in said
    )
    run("import importlib, pathlib\nf = pathlib.Path('elsewhere.py')")
    run("_ = f.write_text(f.read_text().replace('return x', 'return x * 2'))")
    run("elsewhere = importlib.reload(elsewhere)")
    shown = run(
        "with tf.Graph().as_default(), tf.Session() as s:\n    r = s.run(elsewhere.once(tf.constant([4.0]))).tolist()\nr"
    )
    assert value(shown) == "[8.0]", "the file that is run again replaces its own"


def test_an_edited_gradient_and_kernel_of_an_op_take_the_place_of_those_before(run):
    run(OP.format(0.0, "").replace("lab::shift", "lab::own").replace("def shift", "def own"))
    gradient = "@own.register_gradient\ndef own_gradient(op, grad):\n    return [grad * {0}]\n"
    kernel = "@own.register_kernel('cpu')\ndef own_cpu(x, by):\n    return x * np.float32({0})\n"
    step = "x = tf.constant([1.0])\nt = own(x)\nu = tf.gradients(t, x)[0]\ns = tf.Session()\ns.run([t, u])"
    assert (
        value(run(gradient.format(2.0), kernel.format(3), step))
        == "[array([3.], dtype=float32), array([2.], dtype=float32)]"
    )
    again = "s.run([t, tf.gradients(t, x)[0]])"
    assert value(run(kernel.format(5), again)) == "[array([5.], dtype=float32), array([2.], dtype=float32)]"
    assert value(run(gradient.format(7.0), step)) == "[array([5.], dtype=float32), array([7.], dtype=float32)]"


def test_an_edited_gradient_of_a_name_takes_the_place_of_the_one_before(run):
    gradient = "@tf.RegisterGradient('Mine')\ndef mine(op, grad):\n    return grad * {0}\n"
    step = """\
x = tf.constant([1.0])
with tf.get_default_graph().gradient_override_map({'Square': 'Mine'}):
    y = tf.square(x)
tf.Session().run(tf.gradients(y, x)[0]).tolist()
"""
    assert value(run(gradient.format(2.0), step)) == "[2.0]"
    assert value(run(gradient.format(3.0), step)) == "[3.0]"


def test_an_edited_library_takes_the_place_of_the_one_before(run):
    kernel = "@ops.RegisterKernel('nb.Plus', compute=True)\ndef plus(x, out):\n    np.add(x, np.float32(1), out)"
    use = """\
with tf.Graph().as_default() as g, tf.Session() as s:
    t = lib.plus(tf.constant([1.0]))
    r = (s.run(t).tolist(), t.op.get_attr('by'))
r
"""
    assert value(run(SPEC.format(1.5), "lib = tf.load_op_library('lib.yaml')", kernel, use)) == "([2.0], 1.5)"
    run("kept, kept_graph = t, g")
    assert value(run(SPEC.format(2.5), "lib = tf.load_op_library('lib.yaml')", use)) == "([2.0], 2.5)"
    assert value(run("kept.op.get_attr('by'), tf.Session(graph=kept_graph).run(kept).tolist()")) == "(1.5, [2.0])"


@pytest.mark.parametrize(
    "expression",
    [
        "tf.get_default_graph()",
        "loss",
        "shown",
        "shown.explain(loss, feed)",
        "tf.profiler.profile(shown, loss, feed, steps=2)",
    ],
)
def test_what_a_cell_ends_with_is_html(run, expression):
    run(
        "tf.reset_default_graph()\nwith tf.name_scope('layer<1>'.replace('<', '_').replace('>', '_')):\n"
        "    x = tf.placeholder(tf.float32, [None, 3], name='x')\n    w = tf.Variable(np.ones((3, 2), np.float32), name='w')\n"
        "    h = tf.nn.relu(tf.matmul(x, w))\nloss = tf.reduce_mean(h, name='loss')\nfeed = {x: np.ones((4, 3), np.float32)}\n"
        "shown = tf.Session()\nshown.run(w.initializer)\n_ = shown.run(loss, feed)"
    )
    (output,) = run(expression)
    page = output["data"]["text/html"]
    assert page.startswith('<div class="graphdock">') and "<table>" in page and "loss" in page or "Session" in page
    assert ("<svg" in page) == ("profile" not in expression)
