"""Random programs with branches, loops, variables and random ops: passes, executors and memories change nothing.

Two thousand, of which `make test` runs some. Four cpus with memories apart give the bits of one. Plain steps round otherwise where
rules of arithmetic do, and so does the dataflow executor, for the last bits of a small product depend on where its operands lie.
"""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.passes.pipeline import simplifications
from graphdock.plugin.host import Host

pytestmark = pytest.mark.modes
CHUNK, PROGRAMS = 5, 2000
APART = {"device_count": {"cpu": 4}, "options": {"cpu": {"memories": "apart"}}}
OFF = dict.fromkeys([*simplifications(), "invariants", "regions", "patterns"], False)


@pytest.fixture(scope="module")
def apart():
    """A host whose virtual cpus have memories of their own."""
    host = Host()
    yield host
    host.close()


def build(random, places, depth=0, values=None, variables=()):
    """Tensors of three numbers each: what a program fetches."""
    values = [tf.constant([1.0, 2.0, 3.0]), tf.constant([-0.5, 0.25, 0.0])] if values is None else list(values)
    last = None
    for _ in range(random.randint(2, 7 if depth == 0 else 4)):
        x, y = (values[random.randint(len(values))] for _ in range(2))
        kind = random.choice(KINDS if depth < 2 else KINDS[:-2])
        seed = int(random.randint(1, 100))
        with tf.device(places[random.randint(len(places))]), tf.control_dependencies([] if last is None else [last]):
            if kind in ("read", "add", "assign"):
                v = variables[random.randint(len(variables))]
                with tf.device(None):
                    made = {
                        "read": lambda v=v: v.read_value(),
                        "add": lambda v=v, x=x: v.assign_add(tf.tanh(x)),
                        "assign": lambda v=v, x=x: v.assign(tf.sin(x)),
                    }[kind]()
                    made = tf.identity(made)
                    last = made.op
            elif kind == "cond":
                test = tf.constant(bool(seed % 2)) if seed % 3 == 0 else tf.reduce_sum(x) > 0.5
                state = random.randint(1 << 30)
                bodies = [np.random.RandomState(state + i) for i in range(2)]
                made = tf.cond(
                    test, *(lambda r=r, y=y: build(r, places, depth + 1, values, variables)[-1] + y for r in bodies)
                )
                last = made.op
            elif kind == "loop":
                body = np.random.RandomState(random.randint(1 << 30))
                count = int(random.randint(4))
                _, made = tf.while_loop(
                    lambda i, a, count=count: i < count,
                    lambda i, a, body=body: (
                        i + 1,
                        tf.tanh(build(body, places, depth + 1, [a, *values], variables)[-1]),
                    ),
                    [0, x],
                )
                last = made.op
            else:
                made = ARITHMETIC[kind](x, y, seed)
        made.set_shape([3])
        values.append(made)
    return values[2:] if depth == 0 else values


ARITHMETIC = {
    "draw": lambda x, y, seed: x + tf.random_uniform([3], seed=seed),
    "neg": lambda x, y, seed: tf.negative(tf.negative(x)) - (-y),
    "square": lambda x, y, seed: tf.tanh(x) * tf.tanh(x),
    "softmax": lambda x, y, seed: tf.nn.softmax(x) * y,
    "log": lambda x, y, seed: tf.log(tf.nn.softmax(tf.tanh(x))),
    "turn": lambda x, y, seed: tf.reshape(tf.transpose(tf.transpose(tf.reshape(x, [1, 3]))), [3]),
    "product": lambda x, y, seed: tf.reshape(
        tf.matmul(tf.reshape(tf.tanh(y), [1, 3]), tf.transpose(tf.ones([3, 3]) * tf.tanh(x))), [3]
    ),
    "power": lambda x, y, seed: tf.sin(x) ** 2.0 + tf.cos(y) * 1.0,
}
KINDS = [*ARITHMETIC, "read", "add", "assign", "cond", "loop"]


def results(seed, places, config, host=None):
    with tf.Graph(host=host).as_default():
        tf.set_random_seed(seed)
        variables = [tf.Variable([0.1 * (i + 1)] * 3) for i in range(2)]
        fetches = build(np.random.RandomState(seed), places, variables=variables)
        with tf.Session(config=config, host=host) as sess:
            sess.run(tf.global_variables_initializer())
            return [np.asarray(x) for _ in range(2) for x in [*sess.run(fetches), *sess.run(variables)]]


@pytest.mark.sampled(PROGRAMS // CHUNK // 2)
@pytest.mark.parametrize("chunk", range(PROGRAMS // CHUNK))
def test_optimised_is_plain_and_executors_and_memories_change_no_bit(chunk, apart):
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        one = ["/device:cpu:0"] * 4
        want = results(seed, one, tf.SessionConfig(executor="straight_line"))
        four = [f"/device:cpu:{i}" for i in range(4)]
        got = results(seed, four, tf.SessionConfig(**APART), apart)
        assert [x.tobytes() for x in got] == [x.tobytes() for x in want], f"program {seed}, memories apart"
        for way in ({"passes": OFF}, {"executor": "dataflow"}):
            for found, expected in zip(results(seed, one, tf.SessionConfig(**way)), want, strict=True):
                np.testing.assert_allclose(
                    found, expected, rtol=1e-4, atol=1e-5, err_msg=f"program {seed}, {list(way)}"
                )


@pytest.mark.sampled(PROGRAMS // CHUNK // 4)
@pytest.mark.parametrize("chunk", range(PROGRAMS // CHUNK))
def test_each_pass_twice_is_once(chunk, again):
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        fields = {"memory_budget": {"cpu": 16}} if seed % 2 else {}
        results(seed, ["/device:cpu:0"] * 4, tf.SessionConfig(**fields))
    assert any(again.values())
