"""``graphdock run`` does what ``python`` would, with graphdock in TensorFlow's place."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner
from graphdock.cli import cli

#: A program of 2016's tutorials: MNIST, a layer, a loop.
SOFTMAX = """
import sys
import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data
mnist = input_data.read_data_sets("MNIST_data", one_hot=True, seed=3)
x = tf.placeholder(tf.float32, [None, 784])
y_ = tf.placeholder(tf.float32, [None, 10])
W = tf.Variable(tf.zeros([784, 10]))
y = tf.nn.softmax(tf.matmul(x, W) + tf.Variable(tf.zeros([10])))
loss = tf.reduce_mean(-tf.reduce_sum(y_ * tf.log(y), reduction_indices=[1]))
train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1)), tf.float32))
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(100):
        xs, ys = mnist.train.next_batch(100)
        sess.run(train, {x: xs, y_: ys})
    print("right", sess.run(right, {x: mnist.test.images, y_: mnist.test.labels}))
"""


def test_a_tutorial_runs_as_it_stands(run):
    done = run(SOFTMAX, "--toy-data")
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[-1]) > 0.9
    assert "no MNIST in 'MNIST_data'" in done.stderr and "lacks" not in done.stderr


def test_arguments_status_and_folder_are_the_programs_own(run, tmp_path):
    (tmp_path / "beside.py").write_text("VALUE = 5\n")
    done = run(
        "import sys, tensorflow as tf, beside\nprint(sys.argv, __name__, beside.VALUE, tf.__version__)\nsys.exit(7)\n",
        arguments=["--steps", "3", "-x"],
    )
    assert done.returncode == 7
    assert done.stdout == "['script.py', '--steps', '3', '-x'] __main__ 5 1.15.0\n"


def test_a_module_runs_as_python_m_would(run, tmp_path):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__main__.py").write_text("import sys, tensorflow as tf\nprint(tf.VERSION, sys.argv[1:])\n")
    done = run("", "-m", "pack", name="first_argument")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1.15.0 ['first_argument']\n"


def test_an_error_shows_the_programs_own_lines(run):
    done = run("import tensorflow as tf\n\ndef f():\n    return tf.matmul([[1.0]], [1.0])\n\nf()\n")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):" and 'script.py", line 6' in lines[1]
    assert "runpy" not in done.stderr and "click" not in done.stderr


def test_a_missing_feed_shows_the_programs_lines_alone(run):
    done = run("import tensorflow as tf\nx = tf.placeholder(tf.float32, [], name='x')\n\n\ntf.Session().run(x + 1)\n")
    lines = done.stderr.splitlines()
    assert 'script.py", line 5, in <module>' in lines[1] and "placeholder 'x' is needed and was not fed" in lines[3]
    assert lines[2].strip() == "tf.Session().run(x + 1)" and sum("File " in line for line in lines) == 1


def test_what_a_function_of_the_program_raises_is_shown_in_its_lines_and_keeps_its_class(run):
    done = run(
        "import tensorflow as tf\nclass Mine(Exception):\n    pass\ndef f(x):\n    raise Mine('no')\n"
        "y = tf.py_func(f, [1.0], tf.float32)\nwith tf.Session() as sess:\n    try:\n        sess.run(y)\n"
        "    except Mine as error:\n        print(type(error).__name__)\n    sess.run(y)\n"
    )
    assert done.returncode == 1 and done.stdout == "UnknownError\n"
    places = [line for line in done.stderr.splitlines() if line.startswith("  File ")]
    assert [p.rpartition("line ")[2] for p in places] == ["5, in f", "12, in <module>"]


def test_what_is_not_here_is_listed_at_the_end(run):
    done = run(
        "import tensorflow as tf\nfor _ in range(2):\n    print(hasattr(tf, 'enable_eager_execution'))\n"
        "try:\n    import tensorflow.python.keras\n"
        "except ImportError as error:\n    print(error)\n"
    )
    assert done.returncode == 0
    assert "No module named 'tensorflow.python.keras'" in done.stdout
    assert "asked for 2 names that graphdock lacks" in done.stderr
    assert "tf.enable_eager_execution  (script.py:3): it is not yet here: eager execution comes" in done.stderr


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("print 'x'\n", "script.py:1 is written for Python 2"),
        ("import tensorflow as tf\nfor i in xrange(3):\n    pass\n", "the program is written for Python 2"),
        ("d = {}\nd.iteritems()\n", "the program is written for Python 2"),
    ],
)
def test_programs_for_python_2_are_told_what_to_do(run, text, line):
    done = run(text)
    assert done.returncode == 1 and line in done.stderr and "2to3 -w" in done.stderr


def test_pythons_that_it_starts_do_so_too_and_no_others(run_apart, tmp_path):
    text = (
        "import subprocess, sys\n"
        "code = 'import tensorflow as tf; print(tf.__version__, tf.mul)'\n"
        "print(subprocess.check_output([sys.executable, '-c', code], text=True))\n"
    )
    done = run_apart(text, "--before-1.0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1.15.0 <function multiply")
    after = subprocess.run(
        [sys.executable, "-c", "import tensorflow, sys; print(tensorflow.__file__)"], capture_output=True, text=True
    )
    assert "graphdock" not in after.stdout


def test_an_installed_tensorflow_is_not_used_and_that_is_said_once(run, tmp_path, monkeypatch):
    real = tmp_path / "site" / "tensorflow"
    real.mkdir(parents=True)
    (real / "__init__.py").write_text("raise RuntimeError('the real one')\n")
    monkeypatch.syspath_prepend(real.parent)
    done = run("import tensorflow as tf\nfrom tensorflow.python.ops import nn\nprint(tf.__version__)\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1.15.0\n" and done.stderr.count(str(real / "__init__.py")) == 1


def test_steps_stops_after_so_many(run):
    done = run(SOFTMAX, "--toy-data", "--steps", "5")
    assert done.returncode == 0 and "right" not in done.stdout
    assert "stopped after 5 steps" in done.stderr


@pytest.mark.parametrize(("option", "word"), [("--explain", "GradientDescent"), ("--profile", "cpu.mat_mul")])
def test_the_first_step_that_trains_is_looked_at_and_the_program_stops(run, option, word):
    done = run(SOFTMAX, "--toy-data", option)
    assert done.returncode == 0, done.stderr
    assert word in done.stdout and "right" not in done.stdout


def test_a_program_that_trains_nothing_is_explained_by_its_largest_step(run):
    done = run(
        "import tensorflow as tf\nx = tf.constant(2.0) * tf.random_uniform([])\ntf.Session().run(x)\n", "--explain"
    )
    assert done.returncode == 0, done.stderr
    assert "its largest" in done.stderr and "RandomUniform" in done.stdout


#: A script without a main guard, which trains and prints.
BARE = """
import sys
import numpy as np
import tensorflow as tf
x = tf.placeholder(tf.float32, [None, 3], name="x")
w = tf.Variable(tf.ones([3, 1]), name="w")
with tf.name_scope("inner"):
    cost = tf.reduce_mean(tf.square(tf.matmul(x, w)), name="mean_square")
train = tf.train.AdamOptimizer().minimize(cost)
sess = tf.Session()
sess.run(tf.global_variables_initializer())
print("begins", sys.argv[1:])
for i in range(100):
    sess.run(train, {x: np.ones((2, 3))})
print("trained", sess.run([cost, train], {x: np.ones((2, 3))}))
"""


@pytest.mark.parametrize("fetch", ["cost", "mean_square", "inner/mean_square:0"])
def test_explain_takes_a_script_and_what_it_fetches(run, fetch):
    done = run(BARE, "--fetch", fetch, arguments=["--depth", "3"], command="explain")
    assert done.returncode == 0, done.stderr
    assert "begins ['--depth', '3']" in done.stderr and "trained" not in done.stdout + done.stderr
    assert "inner/mean_square" in done.stdout and "Adam" not in done.stdout and "begins" not in done.stdout


def test_profile_takes_a_script(run):
    done = run(BARE, "--by", "kernel", "--steps", "2", command="profile")
    assert done.returncode == 0, done.stderr
    assert "cpu.mat_mul" in done.stdout and "trained" not in done.stdout + done.stderr


def test_what_a_script_does_not_fetch_is_an_error_that_names_it(run):
    done = run(BARE, "--fetch", "coste", command="explain")
    assert done.returncode == 2 and "has no 'coste'" in done.stderr and "Traceback" not in done.stderr
    done = run(
        "import tensorflow as tf\ntf.Session().run(tf.constant(1, name='one'))\n", "--fetch", "two", command="explain"
    )
    assert done.returncode == 2 and "no step of the program fetches 'two'" in done.stderr and "fetch one" in done.stderr


def test_log_lines_are_tensorflows(run_apart):
    done = run_apart(
        "import tensorflow as tf, logging\ntf.logging.set_verbosity(tf.logging.INFO)\ntf.logging.info('loss = %g', 2)\n"
    )
    assert done.stderr == "INFO:tensorflow:loss = 2\n"


def test_no_script_is_an_error_that_names_it():
    done = CliRunner().invoke(cli, ["run", "absent.py"])
    assert done.exit_code != 0 and "no script 'absent.py'" in done.stderr


def test_exits_in_threads_and_forks_are_the_programs_own(run_apart):
    done = run_apart(
        "import os, sys, threading\nimport tensorflow as tf\nt = threading.Thread(target=sys.exit)\nt.start()\nt.join()\n"
        "hasattr(tf, 'enable_eager_execution')\npid = os.fork()\nif not pid:\n    sys.exit(0)\nos.waitpid(pid, 0)\nprint('end')\n"
    )
    assert done.returncode == 0 and done.stdout == "end\n"
    assert done.stderr.count("lacks") == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import tensorflow as tf\ntf.enable_eager_execution()\n", "leave the line out, build a graph, and fetch"),
        ("import tensorflow as tf\nwith tf.GradientTape() as tape:\n    pass\n", "tf.gradients(loss, variables)"),
        ("import tensorflow as tf\n@tf.function\ndef f(x):\n    return x\n", "leave the decorator out"),
        ("import tensorflow as tf\ntf.random.set_seed(1)\n", "it is TensorFlow 2's; tf.set_random_seed"),
        ("import tensorflow as tf\nprint(tf.constant(1).numpy())\n", "fetch it, as with tf.Session() as sess"),
        ("import six_of_nowhere\n", "No module named 'six_of_nowhere'"),
        ("import sys\nsys.modules['six'] = None\nimport six\n", "pip install six"),
        ("from tensorflow.examples.tutorials.mnist import input_data as i\ni.read_data_sets('away')\n", "'away'"),
        ("import tensorflow as tf\ntf.keras.layers.Dense(3)\n", "Keras is a project of its own"),
    ],
)
def test_programs_of_another_world_are_told_what_to_do(run, text, line):
    done = run(text)
    assert done.returncode == 1 and line in done.stderr
    assert ("pip install" in done.stderr) == ("'six'" in text) and "runpy" not in done.stderr


def test_a_program_that_imports_itself_runs_as_under_python(run, monkeypatch):
    monkeypatch.delitem(sys.modules, "itself", raising=False)
    done = run("import tensorflow as tf\nprint(__name__)\nimport itself\nprint(itself.__name__)\n", name="itself.py")
    assert done.returncode == 0 and done.stdout.split() == ["__main__", "itself", "itself", "itself"], done.stderr


@pytest.mark.parametrize(
    "where", ["signal.raise_signal(signal.SIGINT)", "tf.Session().run(tf.py_func(stop, [1.0], tf.float32))"]
)
def test_an_interrupt_ends_the_program_with_its_own_lines(run, where):
    done = run(
        "import signal\nimport tensorflow as tf\ndef stop(x):\n    signal.raise_signal(signal.SIGINT)\n    return x\n"
        f"hasattr(tf, 'enable_eager_execution')\n{where}\nprint('after')\n"
    )
    assert done.returncode == 130 and done.stdout == "" and "KeyboardInterrupt" in done.stderr
    assert 'script.py", line 7' in done.stderr and "asked for 1 name" in done.stderr
