"""The straight-line executor by itself: what an instance keeps, how a step is stopped, and what an error says and holds."""

from __future__ import annotations

import gc
import linecache
import traceback
import warnings
import weakref
from contextvars import ContextVar

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import AbortedError, InvalidArgumentError
from graphdock_executor.straight_line.helpers import poison, read_only
from graphdock_executor.straight_line.instance import Instance, stoppers


def planned(fetch, feeds, **fields):
    """The plan of a step that has run once."""
    metadata = tf.RunMetadata()
    sess = tf.Session(config=tf.SessionConfig(**fields))
    sess.run(fetch, feeds, run_metadata=metadata)
    return sess, metadata.plan


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def namespace_of(text):
    namespace = {}
    exec(text, namespace)
    return namespace


def test_an_instance_frees_what_its_functions_hold_without_the_collector(no_collector):
    namespace = namespace_of("def step(x): return x")
    buffer = namespace["b0"] = np.zeros(3)
    gone = weakref.ref(buffer)
    del buffer
    instance = Instance(namespace, {}, {}, True, False)
    assert instance.call(3) == 3
    del namespace, instance
    assert gone() is None


def test_freeing_an_instance_lets_go_although_somebody_keeps_it(no_collector):
    namespace = namespace_of("def step(): return 1")
    buffer = namespace["b0"] = np.zeros(3)
    gone = weakref.ref(buffer)
    del buffer
    instance = Instance(namespace, {}, {}, False, False)
    instance.free()
    instance.free()
    assert gone() is None and not namespace


@pytest.mark.parametrize("quietly", [True, False])
def test_no_floating_point_warnings_in_a_context_of_its_own_or_the_callers(quietly):
    text = "import numpy as np\ndef step(): return np.float64(1.0) / np.zeros(1), seen.get()"
    seen = ContextVar("seen", default="nothing")
    instance = Instance({**namespace_of(text), "seen": seen}, {}, {}, quietly, False)
    instance.namespace["step"].__globals__["seen"] = seen
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        seen.set("the caller's")
        result, told = instance.call()
        assert np.isinf(result) and told == ("nothing" if quietly else "the caller's")
        with pytest.raises(FloatingPointError):
            np.float64(1.0) / np.zeros(1)


def test_debug_mode_hands_out_feeds_that_can_not_be_written():
    text = "def step(x): x[0] = 1.0"
    plain, debug = (Instance(namespace_of(text), {}, {}, True, debug) for debug in (False, True))
    feed = np.zeros(2)
    plain.call(feed)
    assert feed[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        debug.call(feed)
    assert not read_only(feed).flags.writeable and feed.flags.writeable


@pytest.mark.parametrize("text", ["def step(x): return k1(x), k0(-1)", "def step(x):\n  while running: return 1, 1"])
def test_every_call_and_loop_of_a_stopped_step_raises_until_it_is_made_ready(text):
    called = {"k0": abs, "k1": len}
    namespace = namespace_of(text)
    namespace.update(called, running=True)
    stop, make_ready = stoppers(namespace, called)
    reason = AbortedError("stop")
    stop(reason)
    with pytest.raises(AbortedError) as caught:
        namespace["step"]([1])
    assert caught.value is reason
    make_ready()
    assert namespace["step"]([1]) == (1, 1)


def test_poison_is_in_every_byte_and_leaves_objects_alone():
    floats, ints, words = np.zeros(3, np.float32), np.zeros(2, np.int64), np.array([b"a"], object)
    for buffer in (floats, ints, words):
        poison(buffer)
    assert np.isnan(floats).all() and ints.tolist() == [-1, -1] and words.tolist() == [b"a"]


def test_tracebacks_show_the_line_of_the_generated_source():
    x = tf.placeholder(tf.float32, [3])
    y = tf.gather(tf.tanh(x), tf.placeholder_with_default(np.int32(7), []), name="too_far")
    sess = tf.Session()
    with pytest.raises(InvalidArgumentError) as caught:
        sess.run(y, {x: [1.0, 2.0, 3.0]})
    assert caught.value.op.name == "too_far"
    text = "".join(traceback.format_exception(caught.value))
    line = next(line for line in text.splitlines() if '"<graphdock step' in line)
    assert line in text and "    k" in text[text.index(line) :].splitlines()[1]


@pytest.mark.parametrize("debug", [False, True])
def test_a_kept_error_keeps_the_steps_values_in_debug_mode_only(debug, no_collector):
    """So that a debugger can look at them."""
    made = []

    def watch(array):
        made.append(weakref.ref(array.base if array.base is not None else array))
        raise KeyError("no")

    x = tf.placeholder(tf.float32, [3])
    y = tf.py_func(watch, [x], tf.float32)
    sess = tf.Session(config=tf.SessionConfig(debug=debug))
    feed = np.ones(3, np.float32)
    feeds = weakref.ref(feed)
    with pytest.raises(tf.errors.UnknownError) as caught:
        sess.run(y, {x: feed})
    frames = []
    trace = caught.value.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith("<graphdock step"):
            frames.append(trace.tb_frame)
        trace = trace.tb_next
    assert len(frames) == 1 and bool(frames[0].f_locals) == debug
    assert feeds() is feed


def test_the_source_goes_with_the_program():
    sess, plan = planned(tf.tanh(tf.placeholder_with_default(1.0, [])), None)
    name = plan.program.filename
    assert "def step" in "".join(linecache.getlines(name))
    sess.close()
    del sess, plan
    gc.collect()
    assert name not in linecache.cache


def test_contexts_have_buffers_of_their_own_and_share_constants():
    x = tf.placeholder(tf.float32, [4])
    sess, plan = planned(tf.tanh(tf.tanh(x) + np.arange(4, dtype=np.float32)), {x: np.ones(4)})
    steps = [plan.lease() for _ in range(3)]
    for step in steps:
        plan.run(step, [np.ones(4, np.float32)])
    spaces = [step.state.namespace for step in steps]
    buffers = [n for n in spaces[0] if n[0] == "b" and n[1:].isdigit()]
    constants = [n for n in spaces[0] if n[0] == "c" and n[1:].isdigit()]
    assert buffers and constants
    assert all(len({id(s[n]) for s in spaces}) == 3 for n in buffers)
    assert all(len({id(s[n]) for s in spaces}) == 1 for n in constants)
    assert plan.program.memory == plan.arena_bytes and set(plan.arena_bytes) == {"host"}
    sess.close()
