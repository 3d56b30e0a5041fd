"""Modules of TensorFlow's inside stand for public names."""

from __future__ import annotations

import json

import graphdock as tf
import numpy as np
import pytest

#: What programs write -> the public name that it is.
IMPORTS = {
    "from tensorflow.python.ops import array_ops; x = array_ops.reshape": "reshape",
    "from tensorflow.python.ops.rnn_cell_impl import BasicLSTMCell as x": "nn.rnn_cell.BasicLSTMCell",
    "from tensorflow.python.ops import nn_ops; x = nn_ops.conv2d": "nn.conv2d",
    "from tensorflow.python.ops import nn; x = nn.relu": "nn.relu",
    "from tensorflow.python.ops import variable_scope as vs; x = vs.get_variable": "get_variable",
    "from tensorflow.python.ops import control_flow_ops; x = control_flow_ops.while_loop": "while_loop",
    "from tensorflow.python.ops import init_ops; x = init_ops.zeros_initializer": "zeros_initializer",
    "from tensorflow.python.ops.losses import losses; x = losses.absolute_difference": "losses.absolute_difference",
    "from tensorflow.python.framework import ops; x = ops.convert_to_tensor": "convert_to_tensor",
    "from tensorflow.python.framework import dtypes; x = dtypes.float32": "float32",
    "from tensorflow.python.framework.errors_impl import OutOfRangeError as x": "errors.OutOfRangeError",
    "from tensorflow.python.framework import graph_util; x = graph_util.extract_sub_graph": "graph_util.extract_sub_graph",
    "from tensorflow.python.platform import gfile; x = gfile.GFile": "gfile.GFile",
    "from tensorflow.python.platform import flags; x = flags.FLAGS": "flags.FLAGS",
    "from tensorflow.python.platform import tf_logging as l; x = l.info": "logging.info",
    "from tensorflow.python.training import moving_averages as m; x = m.ExponentialMovingAverage": "train.ExponentialMovingAverage",
    "from tensorflow.python.training.saver import Saver as x": "train.Saver",
    "from tensorflow.python.layers import core; x = core.Dense": "layers.Dense",
    "from tensorflow.python.util import nest; x = nest.flatten": "nest.flatten",
    "from tensorflow.python.client.session import Session as x": "Session",
    "from tensorflow.core.framework import graph_pb2; x = graph_pb2.GraphDef": "GraphDef",
    "from tensorflow.core.framework.summary_pb2 import Summary as x": "Summary",
    "from tensorflow.core.protobuf import config_pb2; x = config_pb2.ConfigProto": "ConfigProto",
    "from tensorflow.core.example import example_pb2; x = example_pb2.Example": "train.Example",
    "import tensorflow.contrib.slim as slim; x = slim.conv2d": "contrib.slim.conv2d",
    "import tensorflow.contrib as tc; x = tc.layers.xavier_initializer": "contrib.layers.xavier_initializer",
    "from tensorflow.contrib import rnn; x = rnn.LSTMCell": "contrib.rnn.LSTMCell",
    "from tensorflow.contrib.rnn.python.ops import core_rnn_cell; x = core_rnn_cell.GRUCell": "contrib.rnn.GRUCell",
    "from tensorflow.contrib.layers.python.layers import utils; x = utils.smart_cond": "contrib.layers.utils.smart_cond",
    "from tensorflow.contrib.layers.python.layers import layers; x = layers.conv2d": "contrib.layers.conv2d",
    "from tensorflow.contrib.framework.python.ops import arg_scope; x = arg_scope": "contrib.framework.arg_scope",
    "from tensorflow.contrib.slim.python.slim.data import dataset; x = dataset.Dataset": "contrib.slim.dataset.Dataset",
    "from tensorflow.contrib.slim.python.slim.nets import vgg; x = vgg.vgg_16": "contrib.slim.nets.vgg.vgg_16",
    "from tensorflow.contrib.slim.python.slim.nets.resnet_v1 import bottleneck as x": "contrib.slim.nets.resnet_v1.bottleneck",
    "import tensorflow.compat.v1 as t; x = t.nn.softmax": "nn.softmax",
    "from tensorflow import nn; x = nn.softmax": "nn.softmax",
    "import tensorflow; x = tensorflow.nn.rnn_cell.GRUCell": "nn.rnn_cell.GRUCell",
}
DROPPED = """
import numpy as np, warnings
warnings.simplefilter("ignore", DeprecationWarning)
assert np.zeros(2, np.float).dtype == np.float64 and np.int is int and np.product([2, 3]) == 6
from scipy.sparse.linalg.eigen.arpack import eigsh
from scipy.misc import imresize, imsave, imread
imsave("x.png", np.arange(12.0).reshape(3, 4))
print(imread("x.png").shape, imresize(imread("x.png"), (6, 8)).shape, eigsh.__name__)
"""
BEFORE = """
import tensorflow as tf
a, b = tf.split(1, 2, tf.constant([[1.0, 2.0], [3.0, 4.0]]))
c = tf.concat(0, [tf.mul(a, b), tf.neg(b), tf.select([[True], [False]], a, b)])
loss = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.pack([a[:, 0], b[:, 0]]), [0, 1])
with tf.Session() as sess:
    sess.run(tf.initialize_all_variables())
    print(*sess.run(c).ravel(), *sess.run(loss))
"""


def test_imports_of_the_inside_are_public_names(run):
    """One process for all: a line that fails is printed with its error."""
    lines = ["import traceback", "found = {}"]
    for code in IMPORTS:
        lines.append(
            f"try:\n    exec({code!r})\n    found[{code!r}] = x\nexcept Exception as e:\n    print({code!r}, repr(e))"
        )
    lines.append("import graphdock\nfor code, name in " + repr(IMPORTS) + ".items():")
    lines.append("    want = graphdock\n    for part in name.split('.'):\n        want = getattr(want, part)")
    lines.append("    if found.get(code) is not want: print(code, found.get(code), want)")
    done = run("\n".join(lines) + "\n")
    assert done.returncode == 0 and done.stdout == "", done.stdout + done.stderr


def test_names_of_the_inside_alone_are_refused_with_the_reason(run):
    done = run("from tensorflow.python.ops import math_ops\nmath_ops._as_indexed_slices\n")
    assert done.returncode == 1
    assert "has no attribute '_as_indexed_slices'; it is a part of TensorFlow's inside" in done.stderr


def test_names_that_numpy_and_scipy_dropped(run_apart):
    pytest.importorskip("PIL")
    done = run_apart(DROPPED, "--old-numpy")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "(3, 4) (6, 8) eigsh\n" and "np.float is gone" in done.stderr


def test_dropped_names_are_answered_when_asked_to_alone(run):
    done = run("import numpy as np\nnp.product\n")
    assert done.returncode == 1 and "has no attribute 'product'" in done.stderr


def test_programs_of_before_1_0(run):
    done = run(BEFORE, "--before-1.0")
    assert done.returncode == 0, done.stderr
    a, b = np.array([[1.0], [3.0]]), np.array([[2.0], [4.0]])
    logits = np.array([[1.0, 3.0], [2.0, 4.0]])
    picked = np.log(np.exp(logits).sum(1)) - logits[[0, 1], [0, 1]]
    want = [*(a * b).ravel(), *(-b).ravel(), 1.0, 4.0, *picked]
    np.testing.assert_allclose([float(word) for word in done.stdout.split()], want, rtol=1e-6)
    assert run(BEFORE).returncode == 1


def test_the_moving_average_that_programs_import(run):
    done = run(
        "import tensorflow as tf\nfrom tensorflow.python.training import moving_averages as m\nv = tf.Variable(1.0)\n"
        "up = m.assign_moving_average(v, 3.0, 0.75, zero_debias=False)\n"
        "with tf.Session() as s:\n    s.run(tf.global_variables_initializer())\n    s.run(up)\n    print(s.run(v))\n"
    )
    assert done.stdout == "1.5\n", done.stderr


def test_version_is_tensorflows_there_alone():
    assert tf.__version__ != "1.15.0" and tf.VERSION == "1.15.0"


def test_modules_and_names_of_the_inside_that_moved_before_1_0(run):
    text = (
        "import tensorflow as tf\nfrom tensorflow.python.ops import math_ops\n"
        "print(tf.nn.seq2seq.model_with_buckets is tf.contrib.legacy_seq2seq.model_with_buckets, math_ops.mul is tf.multiply)\n"
    )
    done = run(text, "--before-1.0")
    assert done.stdout == "True True\n", done.stderr
    without = run(text)
    assert without.returncode == 1 and "tf.contrib.legacy_seq2seq" in without.stderr


def test_modules_of_tensorflows_first_months(run):
    text = """
import tensorflow as tf
import tensorflow.g3doc.tutorials.mnist.mnist as mnist
from tensorflow.g3doc.tutorials.mnist import input_data
from tensorflow.python.kernel_tests import gradient_checker

images = tf.placeholder(tf.float32, [2, mnist.IMAGE_PIXELS])
logits = mnist.inference(images, 4, 3)
up = tf.nn.deconv2d(tf.ones([1, 2, 2, 1]), tf.ones([2, 2, 1, 1]), [1, 4, 4, 1], [1, 2, 2, 1])
x = tf.ones([2])
with tf.Session() as sess:
    assert sess.run(up).sum() == 16
    assert gradient_checker.ComputeGradientError(x, [2], x * 3.0, [2]) < 1e-3
    print(logits.get_shape(), input_data.read_data_sets("/nowhere", fake_data=True).train.num_examples)
"""
    done = run(text, "--before-1.0")
    assert (done.returncode, done.stdout) == (0, "(2, 10) 10000\n"), done.stderr
    assert run("import tensorflow.g3doc").returncode != 0


def test_initializers_under_the_name_of_keras(run):
    text = """
import tensorflow as tf
made = tf.get_variable("a", [3], initializer=tf.keras.initializers.glorot_uniform(seed=1))
from tensorflow.keras.initializers import he_normal
print(type(he_normal()).__name__)
"""
    done = run(text)
    assert (done.returncode, done.stdout) == (0, "HeNormal\n"), done.stderr


def test_compat_says_what_run_answers(run):
    """The same truth before running: each name that it says is answered is there when the program runs."""
    text = (
        "from tensorflow.contrib.slim.python.slim.nets import resnet_v1\nfrom tensorflow.python import debug, pywrap_tensorflow\n"
        "import tensorflow as tf\n"
        "resnet_v1.resnet_v1_block\ndebug.has_inf_or_nan\npywrap_tensorflow.EventsWriter\ntf.keras.initializers.he_normal\n"
        "debug.no_such_thing\ntf.keras.layers.Dense\n"
    )
    said = json.loads(run(text, "--json", command="compat").stdout)
    found = {row["name"]: (row["run"], row["instead"]) for row in said["missing"]}
    block = "contrib.slim.nets.resnet_v1.resnet_v1_block"
    assert found["contrib.slim.python.slim.nets.resnet_v1.resnet_v1_block"] == ("graphdock run", f"tf.{block}")
    answered = {name for name, (how, _) in found.items() if how == "graphdock run"}
    assert found.keys() - answered == {"python.debug.no_such_thing", "keras.layers.Dense"}
    assert f"`graphdock run` answers {len(answered)} of these." in run(text, command="compat").stdout
    lines = "".join(f"tensorflow.{name}\n" for name in sorted(answered))
    done = run(f"import tensorflow.contrib.slim.python.slim.nets.resnet_v1, tensorflow.python.debug\n{lines}")
    assert done.returncode == 0, done.stderr


def test_arguments_that_numpy_and_python_dropped(run_apart):
    text = """
import collections, urllib
import numpy as np
import tensorflow as tf

assert np.reshape([1, 2], newshape=[2, 1]).shape == (2, 1)
assert np.array([1, 2], copy=False).tolist() == [1, 2] and np.array([1], np.float32).dtype == np.float32
assert np.fromstring(b"\\0\\1", np.uint8).tolist() == [0, 1] and np.fromstring("1,2", sep=",").tolist() == [1.0, 2.0]
assert np.asscalar(np.array(3.0)) == 3.0 and isinstance([], collections.Iterable)
assert callable(urllib.request.urlretrieve) and callable(tf.contrib.learn.python.learn.datasets.base.maybe_download)
for module, name in ((collections, "NoSuchThing"), (np, "no_such_thing")):
    assert not hasattr(module, name)
print("end")
"""
    done = run_apart(text, "--old-numpy")
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr
    assert "newshape of np.reshape is gone" in done.stderr and "collections.Iterable is gone" in done.stderr
    assert run_apart(text).returncode == 1
