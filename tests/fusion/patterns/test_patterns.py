"""What is written in several ops becomes one: found with its gradient, in any spelling, and with the same numbers."""

from __future__ import annotations

import dataclasses
import types

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import CONSTANT, Found, KernelDef, KernelRefused, Operand, Pattern, hookimpl
from graphdock.errors import PluginError
from graphdock.ops import apply_op
from graphdock.plugin.host import Host


def by_hand(x, gamma, beta, epsilon):
    """A layer norm of rows, as people write it."""
    d = x - tf.reduce_mean(x, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.square(d), axis=-1, keepdims=True)
    return d * tf.rsqrt(variance + epsilon) * gamma + beta


def as_one(x, gamma, beta, epsilon):
    return apply_op("LayerNorm", x=x, gamma=gamma, beta=beta, epsilon=float(epsilon), begin_norm_axis=-1)[0]


def layer_norm(rank=2, **fields):
    row = Operand((None,))
    inputs = {"x": Operand((None,) * rank), "gamma": row, "beta": row, "epsilon": CONSTANT}
    parts = {"pattern": by_hand, "replacement": as_one, "rank": rank, **fields}
    return Pattern(f"layer_norm_{rank}", "Rsqrt", inputs, **parts)


class Lab:
    """A host with patterns, and no others."""

    def __init__(self, host, patterns, kernels=()):
        self.host = host
        hooks = {
            "register_patterns": hookimpl(specname="register_patterns")(lambda: patterns),
            "register_kernels": hookimpl(specname="register_kernels")(lambda: kernels),
        }
        self.host.register("lab", types.SimpleNamespace(__name__="lab", **hooks))
        self.host.backend("lab")
        self.host.load_patterns().discard("std")  # whose layer norms come first

    def run(self, fetches, feed, **fields):
        """Results, the ops of the plan's outermost level, and the notes of patterns."""
        session = tf.Session(config=tf.SessionConfig(**fields), host=self.host)
        session.run(tf.global_variables_initializer())
        plan = session.explain(fetches, feed).plan
        ops = [n.op for n in plan.graph.nodes if n.verb != "constant"]
        notes = [n for n in plan.placement.notes if n.compiler.startswith("lab.")]
        return session.run(fetches, feed), ops, notes

    def both(self, fetches, feed):
        """The same, and the numbers without fusion are as near as two orders of summation bring them."""
        got, ops, notes = self.run(fetches, feed)
        want, plain, none = self.run(fetches, feed, fusion=False)
        assert not none and "LayerNorm" not in plain
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=2e-4, atol=2e-5 * max(1.0, float(np.abs(w).max())))
        return ops, notes


@pytest.fixture
def lab(process_host):
    def make(patterns=None, kernels=()):
        return Lab(process_host(Host()), [layer_norm(r) for r in (2, 3)] if patterns is None else patterns, kernels)

    with tf.Graph().as_default():
        yield make


def table(*shape, seed=0, low=-1.0):
    return np.random.default_rng(seed).uniform(low, 2.0, shape).astype(np.float32)


def parameters(width, name=""):
    gamma = tf.Variable(table(width, seed=1), name=f"gamma{name}")
    return gamma, tf.Variable(table(width, seed=2), name=f"beta{name}")


def test_a_pattern_and_its_gradients_become_two_ops(lab):
    x = tf.placeholder(tf.float32, [None, 6])
    gamma, beta = parameters(6)
    y = by_hand(x, gamma, beta, 1e-5)
    fetches = [y, *tf.gradients(tf.sin(y), [x, gamma, beta])]
    ops, notes = lab().both(fetches, {x: table(5, 6)})
    assert (ops.count("LayerNorm"), ops.count("LayerNormGrad")) == (1, 1) and {"Mean", "Rsqrt", "Sum"}.isdisjoint(ops)
    assert [n.claimed for n in notes] == [len(notes[0].ops)] and "became LayerNorm, LayerNormGrad" in notes[0].what


@pytest.mark.parametrize("which", [(), (0,), (1, 2), (2,)])
def test_it_takes_the_gradients_that_are_there(lab, which):
    """That by beta is a sum of what arrives, and reads nothing of the pattern: alone it stays as it is."""
    x = tf.placeholder(tf.float32, [4, 6])
    gamma, beta = parameters(6)
    y = by_hand(x, gamma, beta, 1e-5)
    wanted = [[x, gamma, beta][i] for i in which]
    ops, notes = lab().both([y, *(tf.gradients(y * y, wanted) if which else [])], {x: table(4, 6)})
    assert ops.count("LayerNorm") == 1 and ops.count("LayerNormGrad") == (which not in ((), (2,)))
    assert "Rsqrt" not in ops and notes[0].claimed


def otherwise(x, gamma, beta, epsilon):
    """The same with operands the other way round, and axes as lists from the front."""
    last = len(x.shape) - 1
    d = x - tf.reduce_mean(x, [last], keepdims=True)
    inverse = tf.rsqrt(epsilon + tf.reduce_mean(tf.square(d), [last], keepdims=True))
    return beta + gamma * (inverse * d)


@pytest.mark.parametrize("spelling", [by_hand, otherwise])
@pytest.mark.parametrize("dims", [[4, 6], [None, 6], [3, 4, 6], [None, 4, 6], [None, None, 6]])
@pytest.mark.sampled(2)
def test_spellings(lab, spelling, dims):
    shape = [3, 4, 6][3 - len(dims) :]
    x = tf.placeholder(tf.float32, dims)
    gamma, beta = parameters(6)
    y = spelling(x, gamma, beta, np.float32(1e-5))
    ops, _ = lab().both([y, *tf.gradients(y * y, [x, gamma, beta])], {x: table(*shape)})
    assert "LayerNorm" in ops and "LayerNormGrad" in ops


def test_residual_ways_and_two_patterns_of_one_tensor(lab):
    """The gradient of h is one sum of all its uses: both patterns take their summands out of it."""
    other = Pattern(
        "other",
        "Sinh",
        {"x": Operand((None, None))},
        lambda x: tf.sinh(x) * x,
        lambda x: x * 0.5 * (tf.exp(x) - tf.exp(-x)),
    )
    x = tf.placeholder(tf.float32, [None, 6])
    h = tf.tanh(x)
    loss = tf.reduce_sum(by_hand(h, *parameters(6), 1e-5) * (tf.sinh(h) * h) + tf.sqrt(1.0 + h))
    ops, notes = lab([layer_norm(), other]).both(
        [loss, *tf.gradients(loss, [x, *tf.trainable_variables()])], {x: table(5, 6)}
    )
    assert (ops.count("LayerNorm"), ops.count("LayerNormGrad"), ops.count("Sinh")) == (1, 1, 0)
    assert [n.claimed > 0 for n in notes] == [True, True]


def test_what_two_patterns_share_stays(lab):
    """Mean and deviation of one tensor are computed once, whatever norms read them."""
    x = tf.placeholder(tf.float32, [4, 6])
    first, second = (by_hand(x, *parameters(6, name), 1e-5) for name in "ab")
    assert all("lies within" in reason for reason in refused(lab, [first, second], {x: table(4, 6)}))


def test_a_chain_of_blocks(lab):
    x = tf.placeholder(tf.float32, [None, 3, 8])
    h = x
    for i in range(6):
        h = h + tf.tanh(by_hand(h, *parameters(8, str(i)), 1e-6))
    loss = tf.reduce_mean(h * h)
    ops, _ = lab().both([loss, *tf.gradients(loss, tf.trainable_variables())], {x: table(2, 3, 8)})
    assert (ops.count("LayerNorm"), ops.count("LayerNormGrad")) == (6, 6) and "Rsqrt" not in ops


def test_in_a_loop(lab):
    x = tf.placeholder(tf.float32, [4, 6])
    gamma, beta = (v.read_value() for v in parameters(6))
    total = tf.while_loop(lambda i, h: i < 3, lambda i, h: [i + 1, by_hand(h, gamma, beta, 1e-3)], [0, x])[1]
    tested = lab()
    got, _, notes = tested.run([total], {x: table(4, 6)})
    want, _, _ = tested.run([total], {x: table(4, 6)}, fusion=False)
    assert [n.claimed > 0 for n in notes] == [True]
    np.testing.assert_allclose(got[0], want[0], rtol=1e-4, atol=1e-5)


def refused(lab, fetches, feed, patterns=None, **fields):
    """The reason; the numbers are those of the ops, bit for bit."""
    tested = lab(patterns)
    got, ops, notes = tested.run(fetches, feed, **fields)
    want, _, _ = tested.run(fetches, feed, fusion=False)
    assert "LayerNorm" not in ops
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)
    assert [n.claimed for n in notes] == [0] * len(notes)
    return [n.what for n in notes]


def test_what_is_read_or_fetched_within_stays(lab):
    x = tf.placeholder(tf.float32, [4, 6])
    y = by_hand(x, *parameters(6), 1e-5)
    graph = tf.get_default_graph()
    inverse = next(o for o in graph.get_operations() if o.type == "Rsqrt").outputs[0]
    feed = {x: table(4, 6)}
    assert refused(lab, [y, inverse], feed) == ["Rsqrt, which lies within, is fetched"]
    assert refused(lab, [y, tf.exp(inverse, name="far")], feed) == ["far reads Rsqrt, which lies within"]


def test_a_fed_value_is_no_part_of_a_pattern(lab):
    x = tf.placeholder(tf.float32, [4, 6])
    y = by_hand(x, *parameters(6), 1e-5)
    mean = next(o for o in tf.get_default_graph().get_operations() if o.type == "Mean").outputs[0]
    assert refused(lab, [y], {x: table(4, 6), mean: table(4, 1, seed=5)}) == []


def test_numbers_that_are_not_known_and_other_numbers(lab):
    x, eps = tf.placeholder(tf.float32, [4, 6]), tf.placeholder(tf.float32, [])
    assert refused(lab, [by_hand(x, *parameters(6), eps)], {x: table(4, 6), eps: np.float32(0.5)}) == []

    def scaled(x):
        return tf.tanh(x * 0.7978845608) * 0.5

    pattern = Pattern("scaled", "Tanh", {"x": Operand((None, None))}, scaled, lambda x: tf.sin(x))
    tested = lab([pattern])
    for factor, found in ((np.float32(np.sqrt(2 / np.pi)), True), (0.7979, False)):
        _, ops, _ = tested.run([tf.tanh(x * factor) * 0.5], {x: table(4, 6)})
        assert ("Sin" in ops) == found


def test_what_the_pattern_does_not_take(lab):
    x = tf.placeholder(tf.float32, [4, 6])
    y = by_hand(x, *parameters(6), 1e-5)
    seen: list[Found] = []

    def check(found):
        seen.append(found)
        return f"rows of {found.shapes['x'][-1]} are too short"

    assert refused(lab, [y], {x: table(4, 6)}, [layer_norm(check=check)]) == ["rows of 6 are too short"]
    (found,) = {(f.dtype, tuple(f.shapes.items()), float(f.constants["epsilon"]), f.device_type) for f in seen}
    shapes = ("x", (4, 6)), ("gamma", (6,)), ("beta", (6,)), ("epsilon", ())
    assert found == ("float32", shapes, pytest.approx(1e-5), "cpu")


def test_a_pattern_of_one_rank_is_traced_for_no_other(lab):
    traced = []

    def watched(*args, **kwargs):
        traced.append(args)
        return by_hand(*args, **kwargs)

    x = tf.placeholder(tf.float32, [3, 4, 6])
    tested = lab([layer_norm(2, pattern=watched), layer_norm(3)])
    _, ops, _ = tested.run([by_hand(x, *parameters(6), 1e-5)], {x: table(3, 4, 6)})
    assert "LayerNorm" in ops and not traced


def pair(x, y):
    """Two tensors, of which others may read both."""
    wave = tf.sin(x) * y
    return tf.tanh(wave), wave + tf.exp(y)


def paired(x, y):
    """The same, at once."""
    wave, more = tf.unstack(tf.tanh(tf.stack([tf.atanh(tf.sin(x)), tf.atanh(tf.exp(y - 4.0))])))
    return tf.tanh(wave * y), wave * y + more * np.exp(4.0)


def pairs(pattern=pair, replacement=paired):
    square = Operand((None, None))
    return Pattern("pair", "Sin", {"x": square, "y": square}, pattern, replacement)


@pytest.mark.parametrize("arriving", [(0, 1), (0,), (1,), ()])
def test_several_values_have_the_gradients_that_arrive(lab, arriving):
    x, y = (tf.placeholder(tf.float32, [None, 6]) for _ in range(2))
    values = pair(x, y)
    fetches = [*values, *(tf.gradients([tf.square(values[i]) for i in arriving], [x, y]) if arriving else [])]
    ops, notes = lab([pairs()]).both(fetches, {x: table(4, 6) * 0.4, y: table(4, 6, seed=1)})
    assert (ops.count("Atanh"), ops.count("Sin")) == (2, 1)
    assert [n.claimed for n in notes] == [len(notes[0].ops)] and ("Cos" in notes[0].ops) == bool(arriving)


def test_a_chain_of_pairs_whose_gradients_are_one_another_s(lab):
    """What one pattern gives back arrives at the one before it, among the summands of its own gradient."""
    x, y = (tf.placeholder(tf.float32, [4, 6]) for _ in range(2))
    a, b = x, y
    for _ in range(3):
        a, b = pair(a, tf.sigmoid(b))
    fetches = [a, b, *tf.gradients([tf.square(a), tf.square(b)], [x, y])]
    ops, _ = lab([pairs()]).both(fetches, {x: table(4, 6) * 0.4, y: table(4, 6, seed=1)})
    assert ops.count("Atanh") == 6


def apart(x, y):
    wave = tf.sin(x)
    return wave, wave * y


def at_once(x, y):
    wave, more = tf.unstack(tf.tanh(tf.stack([tf.atanh(tf.sin(x)), y])))
    return wave, wave * tf.atanh(more)


def test_a_value_that_would_wait_for_what_is_made_of_another_stays(lab):
    """The second tensor is made of the first: at once they can't be. One that stands before both can wait."""
    x = tf.placeholder(tf.float32, [4, 6])
    before = tf.sigmoid(x)
    wave = tf.sin(x)
    (reason,) = refused(lab, [wave * tf.exp(wave)], {x: table(4, 6)}, [pairs(apart, at_once)])
    assert reason.startswith("what stands for Sin") and reason.endswith("would wait for y")
    (got, *_), ops, (note,) = lab([pairs(apart, at_once)]).run([wave * before, wave, before], {x: table(4, 6)})
    assert note.claimed and "Atanh" in ops
    np.testing.assert_allclose(got, np.sin(table(4, 6)) / (1 + np.exp(-table(4, 6))), rtol=1e-4, atol=1e-5)


def columns(x, y):
    wave = tf.sin(x)
    return tf.reshape(wave, [-1]), wave * y


def columns_at_once(x, y):
    wave, more = at_once(x, y)
    return tf.reshape(wave, [-1]), more


@pytest.mark.parametrize("dims", [(4, 6), (None, 6)])
def test_what_reaches_a_sum_is_1_and_leaves_no_product(lab, dims):
    """As it is looked for where something reads within otherwise; not where that does so anyhow."""
    x, (gamma, beta) = tf.placeholder(tf.float32, dims), parameters(6)
    y = tf.exp(tf.sin(x) * gamma) + beta

    def wave(x, gamma):
        return tf.exp(tf.sin(x) * gamma)

    def wave_at_once(x, gamma):
        return tf.exp(tf.tanh(tf.atanh(tf.sin(x))) * gamma)

    pattern = Pattern("wave", "Sin", {"x": Operand((None, None)), "gamma": Operand((None,))}, wave, wave_at_once)
    fetches = [y, *tf.gradients(tf.reduce_sum(y), [x, gamma])]
    ops, (note,) = lab([pattern]).both(fetches, {x: table(4, 6) * 0.4})
    assert "Atanh" in ops and "Cos" in note.ops, note
    inner = next(op for op in y.graph.get_operations() if op.type == "Sin").outputs[0]
    (reason,) = refused(lab, [*fetches, inner], {x: table(4, 6)}, [pattern])
    assert reason.endswith("Sin, which lies within")


@pytest.mark.parametrize("reduce", [tf.reduce_mean, lambda v: tf.reduce_sum(v * table(12, seed=4))])
def test_the_gradient_of_a_mean_reaches_a_pattern_as_a_constant_of_another_shape(lab, reduce):
    """Of several values too. Where the constant has many numbers the gradient stays as it is."""
    x, y = (tf.placeholder(tf.float32, [3, 4]) for _ in range(2))
    first, second = columns(x, y)
    fetches = [first, second, *tf.gradients([reduce(first), tf.square(second)], [x, y])]
    ops, (note,) = lab([pairs(columns, columns_at_once)]).both(fetches, {x: table(3, 4), y: table(3, 4, seed=1)})
    assert "Atanh" in ops and ("Cos" in note.ops) == (reduce is tf.reduce_mean), note


def test_a_constant_that_reaches_several_patterns_has_a_name_in_each(lab):
    """Passes have made one of two that are the same; debug mode looks at names."""
    x, y = (tf.placeholder(tf.float32, [3, 4]) for _ in range(2))
    made = [columns(x, y), columns(y, x)]
    means = tf.add_n([tf.reduce_mean(first) for first, _ in made])
    fetches = [*made, *tf.gradients([means, *(tf.square(second) for _, second in made)], [x, y])]
    tested = lab([pairs(columns, columns_at_once)])
    _, ops, notes = tested.run(fetches, {x: table(3, 4), y: table(3, 4, seed=1)}, debug=True)
    assert len(notes) == 2 and all("Cos" in note.ops and note.claimed for note in notes), notes


def test_an_input_that_is_made_of_what_looks_like_a_gradient_is_not_waited_for(lab):
    """The sum is the gradient by gamma of what it is a factor of: one op for all gradients would wait for itself."""
    x, g = (tf.placeholder(tf.float32, [4, 6]) for _ in range(2))
    d = x - tf.reduce_mean(x, axis=-1, keepdims=True)
    normal = d * tf.rsqrt(tf.reduce_mean(tf.square(d), axis=-1, keepdims=True) + 1e-5)
    y = normal * tf.reduce_sum(g * normal, 0) + np.arange(6, dtype=np.float32)
    ops, (note,) = lab([layer_norm()]).both([y], {x: table(4, 6), g: table(4, 6, seed=1)})
    assert "LayerNorm" not in ops and note.what.endswith("would wait for gamma")


def test_nodes_that_ask_for_several_devices(lab):
    x = tf.placeholder(tf.float32, [4, 6])
    d = x - tf.reduce_mean(x, axis=-1, keepdims=True)
    with tf.device("/cpu:0"):
        inverse = tf.rsqrt(tf.reduce_mean(tf.square(d), axis=-1, keepdims=True) + 1e-5)
    gamma, beta = parameters(6)
    assert refused(lab, [d * inverse * gamma + beta], {x: table(4, 6)}) == ["its nodes ask for several devices"]


def test_an_op_without_a_kernel_there(lab):
    """ScatterNd of strings: no matter which, an op that this device has no kernel for."""
    x = tf.placeholder(tf.float32, [4, 6])

    def lonely(x):
        return apply_op("Lonely", x=x)

    host = lab([])
    assert host.run([tf.tanh(tf.sin(x))], {x: table(4, 6)})[2] == []
    pattern = Pattern("p", "Tanh", {"x": Operand((None, None))}, lambda x: tf.tanh(tf.sin(x)), lonely)
    with pytest.raises(PluginError, match=r"lab.p \(of .*\) is wrong: it could not be built: .*Lonely"):
        lab([pattern]).run([tf.tanh(tf.sin(x))], {x: table(4, 6)})


@pytest.mark.parametrize(
    ("replacement", "text"),
    [
        (lambda x: tf.reduce_sum(x), "its replacement makes"),
        (lambda x: None, "returns no tensor"),
        (lambda x: (x, x), "its replacement makes 2 tensors for 1"),
        (lambda x: tf.stop_gradient(tf.sin(x)), "its replacement has no gradient by x"),
    ],
)
def test_functions_that_do_not_fit_one_another(lab, replacement, text):
    x = tf.placeholder(tf.float32, [4, 6])
    y = tf.tanh(tf.sin(x))
    pattern = Pattern("p", "Tanh", {"x": Operand((None, None))}, lambda x: tf.tanh(tf.sin(x)), replacement)
    with pytest.raises(PluginError, match=text):
        lab([pattern]).run([y, *tf.gradients(y, [x])], {x: table(4, 6)})


def wrong(lab, error=PluginError, pattern=lambda x: tf.tanh(tf.sin(x)), **fields):
    """The error of a step that has the anchor of a pattern."""
    x = tf.placeholder(tf.float32, [4, 6])
    fields = {"replacement": lambda x: tf.sin(x), **fields}
    with pytest.raises(error) as caught:
        lab([Pattern("p", "Tanh", {"x": Operand((None, None))}, pattern, **fields)]).run(
            [tf.tanh(tf.sin(x))], {x: table(4, 6)}
        )
    return caught.value


@pytest.mark.parametrize(
    "fields",
    [
        {"pattern": lambda x: tf.tanh(tf.random_uniform([4, 6]))},
        {"replacement": lambda x: x * tf.random_uniform([4, 6])},
    ],
)
def test_a_function_that_draws_is_wrong(lab, fields):
    """It would draw other numbers than the program does, or be found nowhere."""
    assert "RandomUniform does more than compute" in str(wrong(lab, **fields))


def test_slips_of_authors_are_named(lab):
    assert "its function has no Tanh, the anchor, but Mul, Sin" in str(wrong(lab, pattern=lambda x: x * tf.sin(x)))
    error = wrong(lab, attrs=("t",))
    assert "its anchor Tanh has no attribute 't'" in str(error) and "did you mean 'T'?" in str(error)
    error = wrong(lab, pattern=lambda y: tf.tanh(tf.sin(y)))
    assert "the pattern of lab.p (of lab) raises TypeError" in str(error) and "given x" in str(error)
    assert isinstance(error.__cause__, TypeError)


@pytest.mark.parametrize("which", ["pattern", "replacement", "check", "worth"])
def test_whatever_function_of_a_pattern_raises_its_plugin_is_named(lab, which):
    def raises(*_, **__):
        return {}["mine"]

    error = wrong(lab, **{which: raises})
    assert "lab.p (of lab)" in str(error) and f"{which} " in str(error) and "raises KeyError: 'mine'" in str(error)
    assert isinstance(error.__cause__, KeyError)


def test_what_was_found_is_printed_and_no_refusal_of_a_spelling_that_lost(lab):
    """The second spelling is a part of what the first one stands for."""
    small = Pattern("small", "Rsqrt", {"x": Operand((4, 1))}, lambda x: tf.rsqrt(x), lambda x: tf.rsqrt(x) * 1.0)
    refusing = dataclasses.replace(small, name="refusing", check=lambda found: "never")
    x = tf.placeholder(tf.float32, [4, 6])
    y = by_hand(x, *parameters(6), 1e-5)
    made = lab([refusing, layer_norm()])
    session = tf.Session(host=made.host)
    shown = str(session.explain(y, {x: table(4, 6)}))
    (line,) = [line for line in shown.splitlines() if line.startswith("pattern")]
    assert line.startswith("pattern lab.layer_norm_2 on cpu: ") and line.endswith(" became LayerNorm")
    assert "refused" not in shown
    shown = str(session.explain(tf.rsqrt(tf.exp(x[:, :1])), {x: table(4, 6)}))
    assert "pattern lab.refusing refused 1 node on cpu (Rsqrt): never\n" in shown


@pytest.mark.parametrize("left", [True, False])
def test_a_kernel_that_refuses_when_it_is_prepared(lab, left):
    """Another kernel takes its place; where there is none, the plan is begun anew without what it was for."""
    asked = []

    def prepare(ctx):
        asked.append(ctx.node.op)
        raise KernelRefused("not today")

    kernel = KernelDef("LayerNorm", "cpu", None, "eager", types={"T": ("float32",)}, priority=99, prepare=prepare)
    x = tf.placeholder(tf.float32, [4, 6])
    y = by_hand(x, *parameters(6), 1e-5)
    tested = lab([layer_norm()], [kernel])
    pins = {} if left else {"LayerNorm@cpu": "lab.eager"}
    got, ops, notes = tested.run([y], {x: table(4, 6)}, backends=["lab", "cpu"], kernels=pins)
    assert asked and ("LayerNorm" in ops) == bool(notes[0].claimed) == left
    assert left or "not today" in notes[0].what
    np.testing.assert_allclose(got, tested.run([y], {x: table(4, 6)}, fusion=False)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_random_programs(lab):
    """Norms among other ops: whatever is found, the numbers are those of the ops."""
    tested, found = lab(), 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [None, 6])
            live = [tf.tanh(x), x * 0.5]
            for i in range(8):
                a, b = (live[rng.integers(len(live))] for _ in range(2))
                kind = rng.integers(5)
                if kind < 2:
                    live.append(by_hand(a, *parameters(6, str(i)), float(rng.choice([1e-3, 1e-2]))))
                else:
                    live.append([a + b, a * tf.sigmoid(b), tf.sin(a)][kind - 2])
            loss = tf.add_n([tf.reduce_mean(v * v) for v in live[-3:]])
            variables = [v for v in tf.trainable_variables() if rng.random() < 0.7]
            slopes = [g for g in tf.gradients(loss, [x, *variables]) if g is not None]
            ops, _ = tested.both([loss, *slopes], {x: table(3, 6, seed=seed)})
            found += ops.count("LayerNorm")
    assert found > 12


def test_a_late_pattern_is_looked_for_in_what_stands_for_another(lab):
    """Once, without gradients of its own."""
    first = Pattern(
        "first", "Expm1", {"x": Operand((None,))}, lambda x: tf.expm1(x) + 1.0, lambda x: tf.log1p(tf.exp(x))
    )
    second = Pattern("second", "Log1p", {"x": Operand((None,))}, lambda x: tf.log1p(x), lambda x: tf.log(1.0 + x))
    x = tf.placeholder(tf.float32, [5])
    for late, wanted in ((False, ["Exp", "Log1p"]), (True, ["Exp", "Log"])):
        patterns = [dataclasses.replace(second, late=late), first]
        _, ops, notes = lab(patterns).run([tf.expm1(x) + 1.0], {x: table(5)})
        assert [op for op in ops if op in ("Exp", "Expm1", "Log", "Log1p")] == wanted
        assert len(notes) == 1 + late


def test_attributes_that_a_pattern_names_have_any_value(lab):
    """Both functions get them as the anchor has them; others are as they are written."""
    asked = []

    def stands(x, alpha):
        asked.append(alpha)
        return tf.maximum(x, 0.0) * 2.0 + tf.minimum(x, 0.0) * (2.0 * alpha)

    sought = {"pattern": lambda x, alpha: tf.nn.leaky_relu(x, alpha) * 2.0, "replacement": stands}
    inputs = {"x": Operand((None, None))}
    tested = lab([Pattern("twice", "LeakyRelu", inputs, **sought, attrs=("alpha",))])
    x = tf.placeholder(tf.float32, [4, 6])
    fetches = [tf.nn.leaky_relu(x, alpha) * 2.0 for alpha in (0.25, 0.5)]
    got, ops, notes = tested.run([*fetches, *tf.gradients(fetches, [x])], {x: table(4, 6)})
    want, _, _ = tested.run([*fetches, *tf.gradients(fetches, [x])], {x: table(4, 6)}, fusion=False)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-6)
    assert "LeakyRelu" not in ops and len(notes) == 2 and set(asked) == {0.25, 0.5}
