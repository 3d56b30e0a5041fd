"""What a node costs: formulas of specs over the shapes of a plan, against NumPy's own counts; unknown where a dim is."""

from __future__ import annotations

import json

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts.opdef import VERBS, ArgDef, AttrDef, OpDef, TypeVarDef
from graphdock.dtypes import ALL, bool_, float32, int32, resource, string
from graphdock.opdef.cost import UNKNOWN, Cost, cost_of
from graphdock_opgen.samples import bindings, make_arrays
from graphdock_opgen.spec_cases import spec_cases
from graphdock_testing.programs import build

HOST = tf.default_host()


def opdef(cost=None, inputs=(("x", "[*S, N]"),), outputs=(("y", "[*S]"),), **more):
    return OpDef(
        "t.Op",
        inputs=tuple(ArgDef(n, "T", shape=s) for n, s in inputs),
        outputs=tuple(ArgDef(n, "T", shape=s) for n, s in outputs),
        types=(TypeVarDef("T"),),
        cost=cost or {},
        **more,
    )


def known(name):
    HOST.backend("std")
    return HOST.ops.get(name)


def row(build_fetch, feed=None):
    """The last row of a program's explanation."""
    with tf.Graph().as_default(), tf.Session() as sess:
        return sess.explain(build_fetch(), feed).rows[-1]


def flops_counted_by_numpy(equation, *operands):
    """NumPy's count for the whole expression in one go: a product and a sum per index combination."""
    report = np.einsum_path(equation, *operands, optimize=False)[1]
    line = next(line for line in report.splitlines() if "Naive FLOP count" in line)
    return float(line.rpartition(":")[2])


@pytest.mark.parametrize(
    ("a", "b", "equation", "transpose_a", "transpose_b"),
    [
        ((3, 4), (4, 5), "ij,jk->ik", False, False),
        ((4, 3), (4, 5), "ji,jk->ik", True, False),
        ((3, 4), (5, 4), "ij,kj->ik", False, True),
        ((2, 7, 3, 4), (2, 7, 4, 5), "abij,abjk->abik", False, False),
    ],
)
def test_matrix_products_cost_what_numpy_counts(a, b, equation, transpose_a, transpose_b):
    left, right = np.zeros(a, np.float32), np.zeros(b, np.float32)
    counted = flops_counted_by_numpy(equation, left, right)

    def program():
        x, y = tf.placeholder(tf.float32, a), tf.placeholder(tf.float32, b)
        return tf.matmul(x, y, transpose_a=transpose_a, transpose_b=transpose_b)

    found = row(program)
    assert found.flops == pytest.approx(counted, rel=0.01)
    result = np.einsum(equation, left, right)
    assert found.bytes == left.nbytes + right.nbytes + result.nbytes


@pytest.mark.parametrize("name", sorted(d.name for d in map(known, HOST.ops.names()) if d.verb.kernel and d.cost))
@pytest.mark.sampled(12)
def test_every_cost_of_a_spec_is_known_once_the_shapes_are(name):
    """Over the op's own samples. A kernel writes its result at least, unless the spec says that it moves nothing."""
    op = known(name)
    package = "graphdock.ops" if op.package == "graphdock" else op.package
    case = spec_cases(package, known).get(name)
    if case is None or not case["samples"]:
        loops = any(a.dtype == "variant" for a in (*op.inputs, *op.outputs))  # made by loops, whose tests run them
        assert loops or any(a.mutates for a in op.inputs) or "io" in op.effects
        return
    for sample in case["samples"]:
        types = next(bindings(op, case, sample))
        arrays = make_arrays(case, sample, types, name)
        graph = tf.Graph()
        attrs = {**sample["attrs"], **{t: d for t, d in types.items() if not any(a.dtype == t for a in op.inputs)}}
        made = build(graph, op, arrays, attrs)
        node = made.op
        inputs, outputs = [(t.dtype, t._dims) for t in node.inputs], [(t.dtype, t._dims) for t in node.outputs]
        found = cost_of(op, node.node_attrs, inputs, outputs)
        if any(None in dims for _, dims in outputs if dims is not None) or any(d is None for _, d in outputs):
            continue
        assert found.flops is not None and found.flops >= 0, sample
        if not any(dtype.kind == "S" for dtype, _ in (*inputs, *outputs)):
            written = sum(d.size * int(np.prod(dims)) for d, dims in outputs)
            assert found.bytes is not None and (found.bytes >= written or op.cost["bytes"] == "0"), sample
        loose = cost_of(op, node.node_attrs, [(d, None) for d, _ in inputs], [(d, None) for d, _ in outputs])
        assert loose.flops in (None, 0) and loose.bytes in (None, 0)


def test_the_default_is_an_operation_per_element_and_every_tensor_once():
    found = cost_of(opdef(), {"T": float32}, [(float32, (2, 3))], [(float32, (2,))])
    assert found == Cost(2, (6 + 2) * 4)


def test_an_elementwise_default_counts_the_operations_of_the_formula():
    formulas = {"x": 1, "x + y": 1, "(x - y) * (x - y)": 3, "select(x > 0, exp(x), -x)": 4}
    for text, each in formulas.items():
        op = opdef(scalar=text, inputs=(("x", "[*S]"), ("y", "[*S]")))
        assert cost_of(op, {"T": float32}, [(float32, (5,))] * 2, [(float32, (5,))]).flops == 5 * each, text


def test_what_lies_in_host_memory_or_behind_a_handle_is_not_moved():
    op = OpDef(
        "t.Op",
        inputs=(ArgDef("x", "T"), ArgDef("axis", "int32", memory="host"), ArgDef("v", "resource", access="reads")),
        outputs=(ArgDef("y", "T"),),
        types=(TypeVarDef("T"),),
    )
    found = cost_of(op, {"T": float32}, [(float32, (4,)), (int32, (1,)), (resource, ())], [(float32, (4,))])
    assert found == Cost(4, 32)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("prod(S) * N", 6),
        ("2 * size(x) + size(y)", 14),
        ("bytes(x)", 24),
        ("size(x) / 4", 2),  # to the nearest, a half to the even one
        ("size(x) * 0.5", 3),
        ("size(x) // size(y)", 3),
        ("N if N > 2 else 0", 3),
        ("max(size(x), size(y))", 6),
        ("rank(S)", 1),
        ("k", 7),
        ("?", None),
        ("size(x) / (N - 3)", None),
        ("size(x) % (N - 3)", None),
    ],
)
def test_expressions(text, value):
    op = opdef({"flops": text, "bytes": text}, attrs=(AttrDef("k", "int"),))
    found = cost_of(op, {"T": float32, "k": 7}, [(float32, (2, 3))], [(float32, (2,))])
    assert found == Cost(value, value)


@pytest.mark.parametrize("dims", [None, (None, 3), (2, None)])
def test_what_depends_on_an_unknown_dim_is_unknown(dims):
    op = opdef({"flops": "size(x)", "bytes": "N * 4"})
    found = cost_of(op, {"T": float32}, [(float32, dims)], [(float32, None)])
    assert found == Cost(None, 12 if dims == (None, 3) else None)


def test_a_dim_may_be_called_like_an_argument():
    op = opdef({"flops": "size(x) + x"}, inputs=(("x", "[x]"),), outputs=(("y", "[x]"),))
    assert cost_of(op, {"T": float32}, [(float32, (5,))], [(float32, (5,))]).flops == 10


def test_strings_have_no_known_size():
    assert cost_of(opdef(), {"T": string}, [(string, (2, 3))], [(string, (2,))]) == Cost(2, None)


def test_list_and_optional_arguments_are_told_apart():
    op = OpDef(
        "t.Op",
        inputs=(
            ArgDef("xs", "T", arity="many", count="N"),
            ArgDef("b", "T", arity="optional"),
            ArgDef("w", "T", shape="[K]"),
        ),
        outputs=(ArgDef("y", "T"),),
        attrs=(AttrDef("N", "int"),),
        types=(TypeVarDef("T"),),
        cost={"flops": "size(xs) + 10 * size(b) + 100 * size(w)", "bytes": "bytes(xs)"},
    )
    x, b, w = (float32, (2,)), (float32, (3,)), (float32, (4,))
    attrs = {"T": float32, "N": 2}
    assert cost_of(op, attrs, [x, x, w], [x]) == Cost(4 + 400, 16)
    assert cost_of(op, attrs, [x, x, b, w], [x]) == Cost(4 + 30 + 400, 16)


def test_two_optional_inputs_of_which_one_is_absent_can_not_be_told_apart():
    op = OpDef(
        "t.Op",
        inputs=(ArgDef("a", "T", arity="optional"), ArgDef("b", "T", arity="optional")),
        outputs=(ArgDef("y", "T"),),
        types=(TypeVarDef("T"),),
        cost={"flops": "size(a)"},
    )
    assert cost_of(op, {"T": float32}, [(float32, (2,))], [(float32, (2,))]) == UNKNOWN


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_has_a_default(verb):
    op = opdef(executes=verb)
    found = cost_of(op, {"T": float32}, [(float32, (2, 3))], [(float32, (2, 3))])
    facts = VERBS[verb]
    if facts.silent or facts.bodies:
        assert found == Cost(0, 0)
    if facts.on_host:
        assert found == (Cost(0, 0) if facts.primitive else UNKNOWN)
    if verb in ("assign", "move"):
        assert found == Cost(0, 48)


@pytest.mark.parametrize("dtype", sorted(ALL))
def test_bytes_are_those_of_numpy(dtype):
    kind = ALL[dtype]
    found = cost_of(opdef(), {"T": kind}, [(kind, (2, 3))], [(kind, (2,))]).bytes
    if kind.size == 0:
        assert found == (None if kind.kind == "S" else 0)  # of a handle or a history nothing is copied
    else:
        assert found == np.zeros((2, 3), kind.np).nbytes + np.zeros(2, kind.np).nbytes


def test_explain_shows_costs_and_their_total():
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None, 100])
        y = tf.reduce_sum(tf.matmul(x, tf.placeholder_with_default(np.ones((100, 10), np.float32), [100, 10])))
        explained = sess.explain(y, {x: np.ones((50, 100))})
        facts = json.loads(explained.to_json())
    product = next(r for r in facts["rows"] if r["op"] == "MatMul")
    assert product["flops"] == 2 * 50 * 100 * 10
    assert product["bytes"] == 4 * (50 * 100 + 100 * 10 + 50 * 10)
    assert facts["cost"] == {
        "flops": sum(r["flops"] for r in facts["rows"]),
        "bytes": sum(r["bytes"] for r in facts["rows"]),
        "unknown": 0,
    }
    assert "100.5 kflop, " in explained.summary() and " KiB moved" in explained.summary()
    assert "at least" not in explained.summary()


def test_explain_says_where_the_total_is_a_lower_bound():
    with tf.Graph().as_default(), tf.Session() as sess:
        doubled = tf.py_func(lambda v: 2 * v, [tf.ones([3])], tf.float32)
        explained = sess.explain(doubled + 1.0)
    assert explained.cost()["unknown"] >= 1
    assert "at least " in explained.summary()
    assert next(r for r in explained.rows if r.op == "PyFunc").flops is None


def test_a_body_counts_once():
    with tf.Graph().as_default(), tf.Session() as sess:
        _, x = tf.while_loop(
            lambda i, x: i < 5,
            lambda i, x: (i + 1, tf.matmul(x, x)),
            [tf.constant(0), tf.placeholder(tf.float32, [8, 8])],
        )
        rows = sess.explain(x).rows
    assert [r.flops for r in rows if r.op == "MatMul"] == [2 * 8**3]
    assert [(r.flops, r.bytes) for r in rows if r.op == "While"] == [(0, 0)]


def test_bool_and_int_results_count_their_own_size():
    found = cost_of(known("Less"), {"T": float32}, [(float32, (8,))] * 2, [(bool_, (8,))])
    assert found == Cost(8, 2 * 32 + 8)
