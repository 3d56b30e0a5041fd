"""``tf.test.TestCase``: graphs, seeds, sessions, threads and errors; scripts of tests end as unittest says."""

from __future__ import annotations

import os
import subprocess
import sys

import graphdock as tf
import numpy as np
import pytest


@pytest.fixture
def case():
    made = tf.test.TestCase()
    made.setUp()
    yield made
    made.tearDown()


def test_each_test_has_a_graph_and_seeds_of_its_own() -> None:
    seen = []
    for _ in range(2):
        made = tf.test.TestCase()
        made.setUp()
        with made.session() as sess:
            assert not sess.graph.get_operations() and sess.graph.seed == 87654321
            seen.append((float(np.random.rand()), sess.run(tf.random_uniform([3])).tolist()))
        made.tearDown()
    assert seen[0] == seen[1]


def test_a_session_is_the_default_one_on_the_cpu_and_closed_behind(case) -> None:
    with case.session() as sess:
        assert tf.get_default_session() is sess
        made = tf.constant(1.0)
        assert made.device == "/device:CPU:0"
    with pytest.raises(RuntimeError):
        sess.run(made)
    with case.session(use_gpu=True):
        assert tf.constant(1.0).device == ""


def test_a_graph_of_its_own(case) -> None:
    graph = tf.Graph()
    with case.session(graph=graph) as sess:
        assert tf.get_default_graph() is graph is sess.graph
    with case.test_session(graph=graph) as sess:
        assert sess.graph is graph


def test_a_cached_session_is_kept_and_checks_its_arguments(case) -> None:
    with case.cached_session() as first:
        made = tf.constant(2.0)
    with case.test_session() as second:
        assert second is first and second.run(made) == 2.0
    assert case.evaluate({"a": made, "b": [made]}) == {"a": 2.0, "b": [2.0]}
    for name, other in (("config", tf.ConfigProto()), ("graph", tf.Graph())):
        words = f"The {name} used to get the cached session is different"
        with pytest.raises(ValueError, match=words), case.cached_session(**{name: other}):
            pass
    case.tearDown()
    with pytest.raises(RuntimeError):
        first.run(made)


def test_errors_are_looked_into(case) -> None:
    with case.session():
        x = tf.placeholder(tf.float32, [], name="fed")
        with case.assertRaisesOpError("fed"):
            x.eval()
    with case.assertRaisesOpError("Caused by: BroadcastTo"):  # an error of a graph that is made has the name alone
        tf.broadcast_to(tf.zeros([3]), [2])
    with case.assertRaisesWithPredicateMatch(ValueError, lambda e: "b" in str(e)):
        raise ValueError("abc")
    with (
        pytest.raises(AssertionError, match="ValueError not raised"),
        case.assertRaisesWithPredicateMatch(ValueError, "x"),
    ):
        pass
    for raised, pattern in ((ValueError("abc"), "z"), (KeyError("z"), "z")):
        looked = case.assertRaisesWithPredicateMatch(ValueError, pattern)
        with pytest.raises(AssertionError, match="Exception of type"), looked:
            raise raised


def test_a_folder_of_the_test(case) -> None:
    assert case.get_temp_dir() == case.get_temp_dir() and os.path.isdir(case.get_temp_dir())
    assert os.path.dirname(case.get_temp_dir()) == tf.test.get_temp_dir()


SCRIPT = """
import graphdock as tf

tf.flags.DEFINE_integer("n", 3, "How many.")

class SquareTest(tf.test.TestCase):
    def testSquare(self):
        with self.test_session():
            self.assertAllClose(tf.square([2.0, 3.0]).eval(), [4.0, 9.0])

    def testWrong(self):
        self.assertEqual(tf.flags.FLAGS.n, 4)

if __name__ == "__main__":
    tf.test.main()
"""


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--n=4"], 0, "Ran 2 tests"),
        ([], 1, "3 != 4"),
        (["SquareTest.testSquare"], 0, "Ran 1 test "),
    ],
)
@pytest.mark.sampled(2)
def test_a_script_of_tests_runs(tmp_path, words, status, said) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, tmp_path / "script.py", *words], capture_output=True, text=True, check=False)
    assert done.returncode == status and said in done.stderr, done.stderr


def test_a_device_that_is_not_there_is_no_matter_unless_it_is_forced(case) -> None:
    """As in TensorFlow, whose tests place softly."""
    with tf.device("/device:GPU:7"):
        x = tf.placeholder_with_default(2.0, []) + 1.0
    for opened in (case.session, case.cached_session, case.test_session):
        with opened() as sess:
            assert sess.run(x) == 3.0
    for refused in ({"force_gpu": True}, {"config": tf.SessionConfig(inter_op_threads=1)}):
        with case.session(**refused) as sess, pytest.raises(tf.errors.InvalidArgumentError, match="device"):
            sess.run(x)
