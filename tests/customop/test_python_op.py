"""An op from a Python function: it is an op like any other, and what is wrong with it is said where it is wrong."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Sequence
from typing import TypeVar

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.contracts.opdef import resolve
from graphdock.errors import (
    AlreadyExistsError,
    DTypeError,
    GradientError,
    InvalidArgumentError,
    KernelNotFoundError,
    ShapeError,
    UnknownOpError,
)
from graphdock.plugin.host import Host
from graphdock_customop.python_op import defined_in
from graphdock_tensorflow.plain_data.writing import as_data
from graphdock_testing import fake
from numpy.typing import NDArray

F = TypeVar("F", np.float32, np.float64)
SAME = {"x": "[*S]", "y": "[*S]"}


class Unit(enum.Enum):
    KM = 1.0
    MILE = 1.609


@pytest.fixture(autouse=True)
def host(process_host):
    host = process_host(Host())
    with tf.Graph().as_default():
        yield host


def define(name="lab::cube", shapes=SAME, **options):
    @tf.custom_op(name, shapes=shapes, **options)
    def cube(x: NDArray[F], factor: float = 1.0) -> NDArray[F]:
        """The cube, times a factor.

        Longer.
        """
        return (x**3 * factor).astype(x.dtype)

    return cube


def with_gradient():
    cube = define()

    @cube.register_gradient
    def gradient(op, grad):
        return 3.0 * op.get_attr("factor") * grad * tf.square(op.inputs[0])

    return cube


def run(fetches, feed=None, **config):
    with tf.Session(config=tf.SessionConfig(**config)) as sess:
        return sess.run(fetches, feed)


def test_it_works_at_once():
    cube = define()
    x = tf.placeholder(tf.float32, [None])
    y = cube(x, factor=2)
    assert (y.op.type, y.name, y.dtype, y.shape.as_list()) == ("lab.Cube", "Cube:0", tf.float32, [None])
    assert run(y, {x: [1.0, 2.0]}).tolist() == [2.0, 16.0]
    assert run(cube(tf.constant([2.0], tf.float64), name="named")).dtype == np.float64
    assert run(cube([1.0, 2.0])).tolist() == [1.0, 8.0]


def test_its_op_def_says_what_the_function_says(host):
    opdef = define(version=3).op_def
    assert (
        str(opdef) == "lab.Cube(x: F) -> y: F"
        and opdef.summary == "The cube, times a factor."
        and opdef.doc == "Longer."
    )
    assert (opdef.version, opdef.traits, opdef.package) == (3, {"pure"}, __name__.partition(".")[0])
    assert opdef.source.partition(":")[0] == __file__
    assert host.ops.get("lab.Cube") == opdef and list(defined_in(host)) == ["lab.Cube"]
    assert tf.ops.apply_op("lab.Cube", x=[2.0], factor=1.0).op.op_def == opdef


def test_attributes_are_what_the_function_takes():
    seen = []

    @tf.custom_op("lab::seen", shapes=SAME)
    def see(
        x: NDArray[F],
        unit: Unit = Unit.KM,
        sizes: list[int] = [1],  # noqa: B006
        pair: tuple[int, ...] = (2,),
        dtype: tf.DType = tf.int32,
        most: int | None = None,
    ) -> NDArray[F]:
        seen.append((unit, sizes, pair, dtype, most))
        return x

    run([see([1.0]), see([1.0], Unit.MILE, sizes=(3, 4), dtype="float32", most=5), see([1.0], unit="MILE")])
    assert sorted(seen, key=str) == sorted(
        [
            (Unit.KM, [1], (2,), tf.int32, None),
            (Unit.MILE, [3, 4], (2,), tf.float32, 5),
            (Unit.MILE, [1], (2,), tf.int32, None),
        ],
        key=str,
    )
    del seen[:]
    attrs = {"unit": "MILE", "sizes": (1,), "pair": (), "dtype": np.dtype("int32"), "most": None}
    resolve(see.op_def.reference)(x=np.zeros(1), F=np.dtype("float64"), **attrs)
    assert seen == [(Unit.MILE, [1], (), tf.int32, None)] and isinstance(seen[0][3], tf.DType)
    with pytest.raises(InvalidArgumentError, match="not allowed"):
        see([1.0], unit="MILES")


def test_lists_options_and_several_outputs():
    @tf.custom_op("lab::parts", outputs=["parts", "total"], shapes={"xs": "[*S]", "parts": "[*S]", "total": "[*S]"})
    def parts(xs: Sequence[NDArray[F]], bias: NDArray[F] | None = None) -> tuple[list[NDArray[F]], NDArray[F]]:
        assert isinstance(xs, list)
        more = 0 if bias is None else bias
        return [x + more for x in xs], np.add.reduce(xs)

    x = tf.placeholder(tf.float32, [2])
    made = parts([x, x, 2 * x])
    assert len(made.parts) == 3 and made.total.shape == [2]
    lists, total = run([made.parts, made.total], {x: [1, 2]})
    assert [a.tolist() for a in lists] == [[1, 2], [1, 2], [2, 4]] and total.tolist() == [4, 8]
    assert run(parts([x], bias=10.0).parts, {x: [1, 2]})[0].tolist() == [11, 12]
    with pytest.raises(InvalidArgumentError, match="must be a list of tensors"):
        parts(x)


def test_no_outputs_means_an_operation_that_runs():
    seen = []

    @tf.custom_op("lab::log", effects=("io",))
    def log(x: NDArray[F]) -> None:
        seen.append(float(x))

    op = log(tf.constant(3.0))
    assert isinstance(op, tf.Operation)
    with tf.control_dependencies([op]):
        y = tf.identity(1.0)
    run(y)
    assert seen == [3.0]


def test_equal_calls_are_merged_unless_it_is_stateful():
    numbers = itertools.count()

    @tf.custom_op("lab::ticket", shapes={"like": "[]", "y": "[]"}, stateful=True)
    def ticket(like: NDArray[np.float32]) -> NDArray[np.int64]:
        return np.asarray(next(numbers))

    calls = []

    @tf.custom_op("lab::once", shapes={"like": "[]", "y": "[]"})
    def once(like: NDArray[np.float32]) -> NDArray[np.int64]:
        calls.append(1)
        return np.asarray(7)

    x = tf.placeholder(tf.float32, [])
    assert sorted(run([ticket(x), ticket(x)], {x: 0.0})) == [0, 1]
    assert run([once(x), once(x)], {x: 0.0}) == [7, 7] and len(calls) == 1


def test_in_loops_and_conds_with_gradients():
    cube = with_gradient()
    x = tf.placeholder(tf.float32, [])
    _, y = tf.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, cube(v)), [0, x])
    z = tf.cond(x > 1.0, lambda: cube(x, factor=10.0), lambda: x)
    (dy,), (dz,) = tf.gradients(y, [x]), tf.gradients(z, [x])
    assert run([y, z, dy, dz], {x: 2.0}) == [512.0, 80.0, 9 * 2.0**8, 120.0]
    assert run([z, dz], {x: 0.5}) == [0.5, 1.0]


def test_the_gradient_agrees_with_differences():
    cube = with_gradient()
    x = tf.placeholder(tf.float64, [3])
    y = tf.reduce_sum(cube(x, factor=0.5) * [1.0, 2.0, 3.0])
    (grad,) = tf.gradients(y, [x])
    at, eps = np.array([0.3, -1.0, 2.0]), 1e-6
    with tf.Session() as sess:
        want = [(sess.run(y, {x: at + d}) - sess.run(y, {x: at - d})) / (2 * eps) for d in np.eye(3) * eps]
        np.testing.assert_allclose(sess.run(grad, {x: at}), want, rtol=1e-7)


def test_an_output_that_nobody_uses_has_zeros_for_a_gradient():
    @tf.custom_op("lab::two", shapes={"x": "[*S]", "y0": "[*S]", "y1": "[*S]"})
    def two(x: NDArray[F]) -> tuple[NDArray[F], NDArray[F]]:
        return x * 2, x * 3

    @two.register_gradient
    def gradient(op, first, second):
        return 2.0 * first + 3.0 * second

    x = tf.placeholder(tf.float32, [2])
    (grad,) = tf.gradients(two(x)[1], [x])
    assert run(grad, {x: [1, 1]}).tolist() == [3, 3]


def test_only_what_may_be_floating_has_a_gradient():
    @tf.custom_op("lab::rows", shapes={"x": "[N]", "at": "[M]", "y": "[M]"})
    def rows(x: NDArray[F], at: NDArray[np.int32]) -> NDArray[F]:
        return x[at]

    assert rows.op_def.gradient_kinds == {} and "no_gradient" not in rows.op_def.traits
    rows.register_gradient(lambda op, g: [tf.scatter_nd(op.inputs[1][:, None], g, tf.shape(op.inputs[0])), None])
    assert rows.op_def.gradient_kinds == {"x": "fn", "at": "none"}
    x = tf.placeholder(tf.float32, [3])
    assert run(tf.gradients(rows(x, [2, 2]), [x])[0], {x: [1, 2, 3]}).tolist() == [0, 0, 2]

    @tf.custom_op("lab::count", shapes={"x": "[N]", "y": "[]"})
    def count(x: NDArray[F]) -> NDArray[np.int64]:
        return np.asarray(len(x))

    assert count.op_def.traits == {"pure", "no_gradient"}


def test_without_a_gradient_the_path_is_named():
    x = tf.placeholder(tf.float32, [2])
    with pytest.raises(GradientError, match="nothing says what the gradient of lab.Cube is") as caught:
        tf.gradients(tf.square(define()(x)), [x])
    assert "Cube (lab.Cube), made at" in str(caught.value)
    assert "@cube.register_gradient gives it a gradient" in str(caught.value)


def test_gradients_stop_at_an_op_that_is_not_differentiable():
    cube = define(differentiable=False)
    x = tf.placeholder(tf.float32, [2])
    assert tf.gradients(cube(x), [x]) == [None]
    with pytest.raises(InvalidArgumentError, match="differentiable=False"):
        cube.register_gradient(lambda op, g: g)


def test_a_graph_is_exported_and_imported(host):
    x = tf.placeholder(tf.float32, [2], name="x")
    define()(x, factor=2.0, name="y")
    text = as_data(tf.get_default_graph())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(text, name="")
        with tf.Session() as sess:
            assert sess.run("y:0", {"x:0": [1, 2]}).tolist() == [2, 16]
        assert graph.get_operation_by_name("y").get_attr("factor") == 2.0
    with tf.Graph(Host()).as_default(), pytest.raises(UnknownOpError, match=r"lab\.Cube"):
        tf.import_graph_def(text, name="")


def test_a_call_declares_it_in_the_graphs_own_host(host):
    cube, other = define(), Host()
    with tf.Graph(other).as_default() as graph:
        y = cube([2.0])
        with tf.Session(graph=graph, host=other) as sess:
            assert sess.run(y).tolist() == [8.0]
    assert list(defined_in(other)) == ["lab.Cube"]

    @cube.register_kernel("cpu")
    def late(x, factor):
        return x * 0

    assert {r.full_name for r in other.kernels.for_op("lab.Cube")} == {"user.cube_body", "user.late"}


def test_a_registered_kernel_runs_and_the_body_stays_the_oracle(host):
    cube = define()

    @cube.register_kernel("cpu")
    def seven(x, factor):
        return np.full_like(x, 7)

    x = tf.placeholder(tf.float32, [1])
    y = cube(x)
    assert run(y, {x: [1]}).tolist() == [7.0]
    assert run(y, {x: [1]}, kernels={"lab.Cube@cpu": "user.cube_body"}).tolist() == [1.0]
    with tf.Session() as sess:
        assert "user.seven" in str(sess.explain(y))
    oracle = resolve(cube.op_def.reference)
    assert oracle(x=np.array([2.0]), factor=1.0, F=np.dtype("float64")).tolist() == [8.0]
    with pytest.raises(AlreadyExistsError, match="has a kernel named 'seven' for cpu already"):
        cube.register_kernel("cpu")(seven)


def test_a_kernel_may_be_a_build_function():
    cube = define()

    @cube.register_kernel("cpu", build=True, name="built")
    def build(ctx):
        factor = ctx.attr("factor")
        if ctx.fresh:
            return lambda x: x * factor
        return lambda x, y: np.multiply(x, factor, y)

    assert run(cube([3.0], factor=2.0)).tolist() == [6.0]


def test_a_kernel_takes_what_the_op_takes():
    with pytest.raises(InvalidArgumentError, match="takes other arguments than the op") as caught:
        define().register_kernel("cpu")(lambda x: x)
    assert caught.value.expected == "x, factor"


def test_on_another_device_the_body_runs_only_by_fallback(host):
    fake.install(host)
    x = tf.placeholder(tf.float32, [1])
    with tf.device("fake"):
        y = define()(x)
    assert run(y, {x: [2]}, backends=("fake", "cpu"), fallback="allow").tolist() == [8.0]
    with pytest.raises(KernelNotFoundError, match=r"lab\.Cube"):
        run(y, {x: [2]}, backends=("fake", "cpu"), fallback="forbid")


def test_a_shape_function():
    @tf.custom_op("lab::pairs")
    def pairs(x: NDArray[F], n: int = 2) -> NDArray[F]:
        return np.stack([x] * n)

    @pairs.register_shape
    def shape(ctx):
        dims = ctx.shape("x")
        if dims is not None and len(dims) != 1:
            raise ctx.fail("x must be a vector")
        return None if dims is None else (ctx.attrs["n"], *dims)

    assert pairs(tf.placeholder(tf.float32, [None]), n=3).shape.as_list() == [3, None]
    assert pairs(tf.placeholder(tf.float32)).shape.dims is None
    assert run(pairs([1.0, 2.0])).tolist() == [[1, 2], [1, 2]]
    with pytest.raises(ShapeError, match="x must be a vector") as caught:
        pairs([[1.0]])
    assert __file__.rpartition("/")[2] in caught.value.site
    with pytest.raises(AlreadyExistsError, match="has a shape rule already"):
        pairs.register_shape(shape)


def test_a_shape_that_is_known_only_when_it_is_computed():
    @tf.custom_op("lab::positive", shapes={"x": "[N]", "y": "?"})
    def positive(x: NDArray[F]) -> NDArray[F]:
        return x[x > 0]

    y = positive(tf.placeholder(tf.float32, [None], name="x"))
    assert y.shape.dims is None
    assert run(tf.reduce_sum(y), {"x:0": [-1, 2, 3]}) == 5.0


def test_a_missing_shape_rule_is_an_error_with_the_cure():
    cube = define(shapes=None)
    with pytest.raises(InvalidArgumentError, match="nothing says what shape 'y' has") as caught:
        cube([1.0])
    assert "@cube.register_shape" in caught.value.hint and '"x": "[*S]"' in caught.value.hint


def test_of_one_output_a_list_of_one_shape_is_a_shape():
    cube = define(shapes=None)
    cube.register_shape(lambda ctx: [ctx.shape("x")])
    assert cube(tf.placeholder(tf.float32, [None, 2])).shape.as_list() == [None, 2]


@pytest.mark.parametrize("result", ["abc", 3.5, (2.5,), [(2,), (3,)], {"y": 1}])
def test_a_shape_function_that_returns_no_shape(result):
    cube = define(shapes=None)
    cube.register_shape(lambda ctx: result)
    with pytest.raises(ShapeError, match="lab::cube: its shape function returned no shape"):
        cube([1.0])


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"x": "[*S]"}, "says nothing of the output 'y'"),
        ({"z": "[*S]", "y": "[*S]"}, "shapes= names 'z'"),
        ({"x": "[*S]", "y": "[*R]"}, "nothing says what R is"),
        ({"x": "[*S]", "y": "*S"}, "is not a shape pattern"),
        ({"x": "[*S]", "y": "[import os]"}, "shapes=: "),
        ({"x": 3, "y": "[]"}, "gives 'x' no pattern"),
    ],
)
def test_patterns_are_checked_when_the_op_is_made(host, shapes, message):
    with pytest.raises(InvalidArgumentError) as caught:
        define(shapes=shapes)
    assert message in str(caught.value) and not defined_in(host)


def test_the_same_definition_again_is_the_same_op():
    assert define() is define()


def test_another_definition_of_the_name_is_an_error():
    first = define()
    with pytest.raises(AlreadyExistsError, match="lab::cube is defined already, at ") as caught:
        tf.custom_op("lab::cube", shapes=SAME)(_other)
    assert first.source in str(caught.value)
    with pytest.raises(AlreadyExistsError):
        define(shapes={"x": "[N]", "y": "[N]"})
    with pytest.raises(AlreadyExistsError):
        define(stateful=True)
    with pytest.raises(AlreadyExistsError):
        define(version=2)


def _other(x: NDArray[F], factor: float = 1.0) -> NDArray[F]:
    return x


def test_another_closure_is_another_definition():
    def make(power):
        @tf.custom_op("lab::power", shapes=SAME)
        def power_of(x: NDArray[F]) -> NDArray[F]:
            return x**power

        return power_of

    assert make(2) is make(2)
    with pytest.raises(AlreadyExistsError):
        make(3)


def test_an_op_of_a_library_is_not_replaced(tmp_path):
    path = tmp_path / "lab.yaml"
    path.write_text(
        "graphdock_opdef: 1\nnamespace: lab\nops:\n- name: Cube\n  summary: x\n  inputs: [{name: x, dtype: float32}]\n"
        "  outputs: [{name: y, dtype: float32}]\n  gradient: none\n"
    )
    tf.load_op_library(path)
    with pytest.raises(AlreadyExistsError, match="'lab.Cube'"):
        define()


@pytest.mark.parametrize("wrong", [len, type, object(), 3])
def test_only_functions_are_decorated(wrong):
    with pytest.raises(InvalidArgumentError, match="decorates a function"):
        tf.custom_op("lab::cube")(wrong)


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        (lambda op: op(), "missing a required argument: 'x'", None),
        (lambda op: op([1.0], 1.0, 2.0), "too many positional arguments", None),
        (lambda op: op([1.0], facter=2.0), "unexpected keyword argument 'facter'", "factor"),
        (lambda op: op([1.0], factor="two"), "attribute 'factor' of lab.Cube has a wrong value", None),
        (lambda op: op(None), "input 'x' is None", None),
    ],
)
def test_wrong_arguments(call, message, hint):
    with pytest.raises(InvalidArgumentError) as caught:
        call(define())
    assert message in str(caught.value)
    assert hint is None or hint in caught.value.hint


def test_a_dtype_that_the_function_does_not_take():
    with pytest.raises(DTypeError, match=r"lab\.Cube does not take int32"):
        define()(tf.constant([1]))


def test_effects_are_graphdocks():
    with pytest.raises(InvalidArgumentError, match="there is no effect 'oi'"):
        define(effects=("oi",))
    with pytest.raises(InvalidArgumentError, match="can't be `random`"):
        define(effects=("random",))


def test_registering_after_use_counts_from_then_on():
    cube = define()
    x = tf.placeholder(tf.float32, [1])
    before = cube(x)

    @cube.register_gradient
    def gradient(op, grad):
        return grad

    assert run(tf.gradients(cube(x), [x])[0], {x: [5]}).tolist() == [1.0]
    with pytest.raises(GradientError):
        tf.gradients(before, [x])
    with pytest.raises(AlreadyExistsError, match="has a gradient already"):
        cube.register_gradient(gradient)


def test_it_is_public():
    assert tf.custom_op is ops.custom_op and tf.ops.CustomOp is type(define())


def test_a_misspelt_keyword_of_a_kernel_is_told_the_nearest():
    @tf.custom_op("misspelt::same", shapes={"x": "[*S]", "y": "[*S]"}, outputs=["y"])
    def same(x: np.ndarray) -> np.ndarray:
        return x

    with pytest.raises(InvalidArgumentError, match="register_kernel has no argument 'priorty'") as raised:
        same.register_kernel("cpu", priorty=3)
    assert raised.value.hint == "did you mean 'priority'?"


@pytest.mark.parametrize("config", [{}, {"debug": True}, {"shape_policy": "generic"}])
def test_a_function_may_keep_what_it_takes_and_what_it_returns(config):
    kept, returned = [], np.zeros(2, np.float32)

    @tf.custom_op("lab::kept", shapes=SAME)
    def keep(x: NDArray[np.float32]) -> NDArray[np.float32]:
        kept.append(x)
        returned[:] = x + 1
        return returned

    p, v = tf.placeholder(tf.float32, [None]), tf.Variable([0.0, 0.0])
    made, fed, read = keep(p * 2.0), keep(p), keep(v)
    with tf.control_dependencies([made, fed, read]):
        more = v.assign_add([1.0, 1.0]).op
    value, results = np.zeros(2, np.float32), []
    with tf.Session(config=tf.SessionConfig(**config)) as sess:
        sess.run(v.initializer)
        for i in range(3):
            value[:] = i
            results.append(sess.run([made, fed, read, more], {p: value})[:3])
    assert sorted(x.tolist() for x in kept) == sorted([[k, k] for i in range(3) for k in (2.0 * i, i, i)])
    assert [[r.tolist() for r in step] for step in results] == [
        [[2 * i + 1] * 2, [i + 1] * 2, [i + 1] * 2] for i in range(3)
    ]
