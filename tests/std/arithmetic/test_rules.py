"""Rules of arithmetic, each on its samples: the same values and gradients with the pass and without it, on a cpu."""

from __future__ import annotations

from pathlib import Path

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock_std import plugin
from graphdock_std.arithmetic.rewriting import heads, ops_of, parsed, variables
from graphdock_std.arithmetic.rules import RULES

PAGE = Path(__file__).parents[3] / "docs" / "arithmetic.md"
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-42, -1e30, 3e38]
CASES = [(rule, dtype, i) for rule in RULES for dtype in rule.dtypes for i in range(len(rule.samples))]


def drawn(dtype, dims, rng, special):
    """An array of the dims; a floating one has NaN, infinities and zeros of both signs in it."""
    count = int(np.prod(dims))
    if dtype == "bool":
        return rng.randint(0, 2, dims).astype(bool)
    if dtype == "int32":
        return rng.choice([-(2**31), 2**31 - 1, 0, -3, 5], dims).astype(np.int32)
    flat = rng.randn(count) * 3
    if special:
        flat[rng.permutation(count)[: max(1, count // 3)]] = np.resize(SPECIAL, max(1, count // 3))[:count]
    with np.errstate(over="ignore"):
        return (flat + (1j * rng.randn(count) if dtype == "complex64" else 0)).astype(dtype).reshape(dims)


def built(term, inputs, extra=()):
    """The tensor of a term."""
    if isinstance(term, str):
        return inputs[term]
    opdef = tf.get_default_graph().host.ops.get(term[0])
    given = {a.name: built(t, inputs) for a, t in zip(opdef.inputs, term[1], strict=True)}
    return ops.apply_op(term[0], **given, **dict(extra))


def program(rule, dtype, sample):
    """Inputs by name, those that are fed, and the pattern over them; a cast goes to a wider type and back."""
    inputs, fed = {}, {}
    for name, what in sample.items():
        if isinstance(what, tuple):
            inputs[name] = fed[name] = tf.placeholder(dtype, what, name)
        else:
            kind = dtype if isinstance(what, float) else bool if np.array(what).dtype == bool else "int32"
            inputs[name] = tf.constant(np.array(what, kind))
    if rule.name == "cast_cast":
        return fed, tf.cast(tf.cast(inputs["x"], tf.float64), tf.float32)
    if rule.name == "select_not":
        inputs["c"] = fed["c"] = tf.placeholder(tf.bool, np.shape(sample["c"]))
    return fed, built(parsed(rule.pattern)[0], inputs)


@pytest.fixture(scope="module")
def sessions():
    """Of one graph: with the pass, and without it."""
    graph = tf.Graph()
    off = {"sums": False, "products": False}
    made = [tf.Session(graph=graph, config=tf.SessionConfig(passes={"arithmetic": on, **off})) for on in (True, False)]
    yield made
    for sess in made:
        sess.close()


def both(sessions, fetches, feed):
    """Values with the pass and without it."""
    with np.errstate(all="ignore"):
        return [sess.run(fetches, feed) for sess in sessions]


def assert_same(got, want, rounding, dtype):
    """Equal, zeros with their signs and NaNs in their places; or within so many units in the last place."""
    assert got.dtype == want.dtype and got.shape == want.shape
    if not rounding:
        np.testing.assert_array_equal(got, want)
        if got.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(got)[~np.isnan(got)], np.signbit(want)[~np.isnan(want)])
        return
    unit = np.finfo(dtype).eps * rounding
    np.testing.assert_allclose(got, want, rtol=unit, atol=unit * max(1, np.max(np.abs(want), initial=0)))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("rule", "dtype", "i"), CASES, ids=lambda c: getattr(c, "name", str(c)))
def test_a_rule_computes_what_was_written(rule, dtype, i, sessions):
    rng = np.random.RandomState(i)
    with sessions[0].graph.as_default():
        fed, y = program(rule, dtype, rule.samples[i])
        for special in (False, True) if dtype.startswith("float") and not rule.rounding else (False,):
            feed = {}
            for name, tensor in fed.items():
                kind = "bool" if name == "c" else dtype
                array = drawn(kind, tensor.shape.as_list(), rng, special)
                positive = parsed(rule.pattern)[0] == ("Reciprocal", (("Sqrt", ("x",)),))
                feed[tensor] = np.abs(array) + 0.1 if positive else array
            assert_same(*both(sessions, y, feed), rule.rounding, dtype)
            xs = [t for n, t in fed.items() if n != "c"]
            slopes = tf.gradients(y, xs) if y.dtype.is_floating else []
            slopes = [g for g in slopes if g is not None]
            for got, want in zip(*both(sessions, slopes, feed), strict=True):
                assert_same(got, want, rule.rounding, dtype)
        plans = [[row.op for row in sess.explain(y, feed).rows] for sess in sessions]
        assert plans[0] != plans[1], "the rule has not been used"


@pytest.mark.parametrize("rule", [r for r in RULES if r.rounding], ids=lambda r: r.name)
def test_what_is_no_number_stays_so(rule, sessions):
    """Where a rule rounds otherwise, NaN and infinities stand where they stood, but for what its note says."""
    with sessions[0].graph.as_default():
        fed, y = program(rule, "float32", rule.samples[0])
        for value in (np.nan, np.inf):
            feed = {t: np.full(t.shape.as_list(), 1.5, np.float32) for t in fed.values()}
            for array in feed.values():
                array.flat[0] = value
            got, want = both(sessions, y, feed)
            np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
            np.testing.assert_array_equal(np.isinf(got), np.isinf(want))


def test_names_are_unique_and_variables_are_bound():
    assert len({r.name for r in RULES}) == len(RULES)
    for rule in RULES:
        bound = variables(parsed(rule.pattern)[0])
        assert bound >= variables(parsed(rule.replacement)[0])
        assert all(sample.keys() == bound for sample in rule.samples)


def test_plugin_names_what_the_rules_begin_at():
    pairs = {}
    for op, rules in heads().items():
        for rule in rules:
            terms = parsed(rule.pattern)[0][1]
            within = {t[0] for t in terms if not isinstance(t, str)}
            pairs.setdefault(op, set()).update(within or {"" if len(set(terms)) < len(terms) else "Const"})
    assert pairs == plugin._PAIRS
    for rule in RULES:
        for term in (rule.pattern, rule.replacement):
            for op in ops_of(parsed(term)[0]):
                assert tf.default_host().ops.get(op)


def row(rule):
    """The line of the docs' table."""
    says = [rule.when.__doc__] if rule.when else []
    says += ["nothing else reads what lies within"] if rule.alone else []
    exact = f"{rule.rounding} units in the last place" if rule.rounding else "none"
    differs = f"{exact}; {rule.note}" if rule.note else exact
    return f"| `{rule.pattern}` | `{rule.replacement}` | {'; '.join(says)} | {differs} |"


def test_page_has_every_rule():
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert lines == [row(rule) for rule in RULES], "\n" + "\n".join(row(rule) for rule in RULES)
