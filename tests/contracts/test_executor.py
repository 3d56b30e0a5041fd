"""The stages of planning: named, timed, and named again by what fails in them."""

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Executor, hookimpl
from graphdock.contracts.executor import run_stages
from graphdock.planning.stages import STAGES
from graphdock.plugin.host import Host


class Refusing(Executor):
    """Compiles nothing."""

    name = "refusing"

    def compile(self, placed):
        raise tf.errors.UnimplementedError("it compiles nothing")


class Engines:
    """A plugin with one executor."""

    @hookimpl
    def register_executors(self):
        return [Refusing()]


def test_explain_shows_the_stages_in_order_with_their_times():
    x = tf.placeholder(tf.float32, [2])
    with tf.Session() as sess:
        facts = sess.explain(tf.tanh(x), {x: np.ones(2)}).facts()
    names = [stage["name"] for stage in facts["stages"]]
    assert names == [*STAGES, "liveness", "lower", "memory", "print"]
    assert all(stage["ms"] >= 0 for stage in facts["stages"])


@pytest.mark.parametrize("debug", [True, False])
def test_a_failing_stage_names_itself_in_debug_mode(debug):
    host = Host()
    host.register("engines", Engines())
    x = tf.placeholder(tf.float32, [2])
    config = tf.SessionConfig(executor="refusing", debug=debug)
    with (
        tf.Session(config=config, host=host) as sess,
        pytest.raises(tf.errors.UnimplementedError, match="compiles nothing") as caught,
    ):
        sess.run(x + 1.0, {x: [1.0, 2.0]})
    assert getattr(caught.value, "__notes__", []) == (["in the stage 'compile'"] if debug else [])


def test_a_stage_that_fails_ends_the_pipeline():
    ran = []

    def fail(subject):
        raise KeyError(subject)

    with pytest.raises(KeyError, match="it"):
        run_stages({"one": ran.append, "two": fail, "three": ran.append}, "it", False)
    assert ran == ["it"]
    assert [r.name for r in run_stages({"one": ran.append, "two": ran.append}, "it", True)] == ["one", "two"]
