"""Edges are drawn of every sample, and find faults that stand at none: kernels right but for a dim of 0 or 1, or one number."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Bound, BuildContext, KernelDef
from graphdock.plugin.host import default_host
from graphdock_testing.conformance import Conformance, ConformanceError
from graphdock_testing.facts import edge_case
from graphdock_testing.facts.edges import ends, ends_of, free, sizes

pytestmark = pytest.mark.slow
PLANTER = "faults_at_edges"


def test_the_shapes_of_a_product():
    opdef = default_host().ops.get("MatMul")
    drawn = dict(sizes(opdef, {"a": np.ones((2, 3)), "b": np.ones((3, 4))}))
    shapes = {what: [a.shape for a in edge.values()] for what, edge in drawn.items()}
    assert shapes["each 3 is 0"] == [(2, 0), (0, 4)]
    assert shapes["each 2 is 1"] == [(1, 3), (3, 4)]
    assert shapes["dim 1 of all is 1"] == [(2, 1), (3, 1)]
    assert shapes["all dims are 0"] == [(0, 0), (0, 0)]
    assert shapes["rank 0 of b"] == [(2, 3), ()]
    assert len({str(s) for s in shapes.values()}) == len(shapes)


def test_lists_change_in_one_place_and_what_steers_does_not():
    opdef = default_host().ops.get("Concat")
    arrays = {"axis": np.array(0, np.int32), "values": (np.ones((2, 3)), np.ones((1, 3)))}
    for what, edge in sizes(opdef, arrays):
        assert edge["axis"] is arrays["axis"] and len(edge["values"]) == 2
        if "values[1]" in what:
            assert edge["values"][0] is arrays["values"][0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int64", "bool"])
def test_the_ends_of_a_dtype_are_its_own(dtype):
    dtype = np.dtype(tf.as_dtype(dtype).np)
    known = ends_of(dtype)
    assert known.dtype == dtype
    if dtype.kind in "iu":
        assert {np.iinfo(dtype).min, np.iinfo(dtype).max} <= set(known.tolist())
    elif dtype.kind != "b":
        wide = known.astype(np.float64)
        assert np.isnan(wide).any() and np.isinf(wide).sum() >= 2 and (np.signbit(wide) & (wide == 0)).any()
        assert 0 < np.nanmin(np.abs(wide[wide != 0])) < 1e-7


def test_numbers_that_a_sample_bounds_stay():
    sample = {"inputs": {"x": {"shape": (2,)}, "y": {"shape": (2,), "low": 0.1}, "z": None, "many": ({"shape": (2,)},)}}
    assert free(sample) == {"x", "many"}
    x = np.ones(50, np.float32)
    opdef = default_host().ops.get("Pow")
    for _, edge in ends(opdef, {"x": x, "y": x}, {"x"}, 0):
        assert edge["y"] is x and not np.isfinite(edge["x"]).all()


# -- faults

Edit = Callable[[list[Any], list[Any]], list[Any]]


def _raise(*_: Any) -> list[Any]:
    raise ZeroDivisionError("division by zero")


def _all(number: float) -> Edit:
    return lambda _, made: [np.full_like(a, number) for a in made]


def _turned(_: list[Any], made: list[Any]) -> list[Any]:
    return [-a for a in made]


def _first_alone(_: list[Any], made: list[Any]) -> list[Any]:
    return [np.where(np.arange(a.size).reshape(a.shape) > 0, np.zeros_like(a), a) for a in made]


def _when(test: Callable[..., bool], edit: Edit) -> Edit:
    """The edit where the inputs are such."""
    return lambda given, made: edit(given, made) if test(*given) else made


def _where(test: Callable[[Any], Any], number: float) -> Edit:
    """The first result is ``number`` where the first input is such a number."""

    def edit(given: list[Any], made: list[Any]) -> list[Any]:
        flags = np.broadcast_to(test(given[0]) if given[0].dtype.kind != "O" else False, made[0].shape)
        return [np.where(flags, np.full_like(made[0], number), made[0]), *made[1:]]

    return edit


def _real(x: Any) -> Any:
    return x.astype(np.complex128).real


def _least(x: Any) -> Any:
    return x == np.iinfo(x.dtype).min if x.dtype.kind == "i" else np.zeros(x.shape, bool)


#: What is wrong of an op's kernel, which else is right -> the op, and what becomes of its results.
FAULTS: dict[str, tuple[str, Edit]] = {
    "a batch of nothing is divided by": ("Conv2D", _when(lambda x, *_: not x.shape[0], _raise)),
    "a product over nothing is not written": ("MatMul", _when(lambda a, *_: a.size == 0, _all(7))),
    "a mean of nothing is 0": ("Mean", _when(lambda x, *_: x.size == 0, _all(0))),
    "a softmax of one class is 0": ("Softmax", _when(lambda x, *_: x.shape[-1] == 1, _all(0))),
    "a scalar partner is taken for 0": ("Mul", _when(lambda x, y: y.ndim == 0 < x.ndim, _all(0))),
    "a partner of size 1 is not repeated": (
        "Add",
        _when(lambda x, y: x.shape != y.shape and 1 in y.shape, _first_alone),
    ),
    "one row is turned": ("Cumsum", _when(lambda x, *_: x.ndim > 1 and x.shape[0] == 1, _turned)),
    "an image one pixel high is black": ("ResizeBilinear", _when(lambda x, *_: x.shape[1] == 1, _all(0))),
    "no rows to gather raise": ("Gather", _when(lambda x, i, *_: i.size == 0, _raise)),
    "segments of no rows are 1": ("UnsortedSegmentSum", _when(lambda x, *_: x.shape[0] == 0, _all(1))),
    "the least integer has a negative": ("Neg", _where(_least, 1)),
    "the largest number is infinite": ("Minimum", _where(lambda x: (_real(x) > 1e38) & np.isfinite(_real(x)), np.inf)),
    "minus infinity is nothing": ("Maximum", _where(lambda x: _real(x) == -np.inf, 0)),
    "NaN is rectified": ("Relu", _where(lambda x: np.isnan(_real(x)), 0)),
    "NaN has a sign": ("Sign", _where(lambda x: np.isnan(_real(x)), 1)),
    "infinity is finite": ("IsFinite", _where(lambda x: np.isinf(_real(x)), True)),
}


def _faulty(build: Callable[[BuildContext], Any], edit: Edit) -> Callable[[BuildContext], Any]:
    def planted(ctx: BuildContext) -> Any:
        made = build(ctx)
        bound = made if isinstance(made, Bound) else Bound(made)
        count = len(ctx.inputs)

        def run(*args: Any) -> Any:
            given = [np.array(a) for a in args[:count]]
            result = bound.compute(*args)
            if ctx.fresh:
                many = isinstance(result, tuple)
                found = [np.asarray(a) for a in edit(given, list(result) if many else [result])]
                return tuple(found) if many else found[0]
            into = args[count : count + len(ctx.outputs)]
            for out, value in zip(into, edit(given, [a.copy() for a in into]), strict=True):
                out[...] = value
            return result

        return dataclasses.replace(bound, compute=run)

    return planted


@pytest.fixture
def plant() -> Iterator[Callable[[str], Conformance]]:
    host = default_host()
    host.backend("cpu")

    def made(fault: str) -> Conformance:
        op, edit = FAULTS[fault]
        right = next(r.kernel for r in host.kernels.for_op(op) if r.plugin == "cpu" and not r.kernel.label)
        faulty = dataclasses.replace(right, build=_faulty(right.build, edit), name="faulty", label="fault")
        host.kernels.add(faulty, PLANTER, PLANTER)
        return Conformance("cpu", pins={f"{op}@cpu": f"{PLANTER}.faulty"})

    yield made
    host.kernels.discard(PLANTER)


def _found(kit: Conformance, op: str, kinds: tuple[str, ...]) -> str | None:
    for case in kit.cases(op):
        if case.kind in kinds:
            try:
                kit.check(case)
            except ConformanceError as error:
                return str(error)
    return None


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.sampled(4)
def test_a_fault_at_an_edge_is_found(plant, fault):
    assert _found(plant(fault), FAULTS[fault][0], ("drawn",))


#: Elementwise ops that are defined of all numbers, though their samples bound them to where gradients can be measured.
BOUNDED = """
    Abs Acos Acosh Asin Atan2 Atanh Elu FloorDiv FloorMod Invert LeakyRelu Log Log1p MulNoNan Pow Reciprocal Rsqrt Selu Softplus
    Softsign Sqrt Tan TruncateDiv TruncateMod Xdivy Xlogy
""".split()


@pytest.mark.parametrize("op", BOUNDED)
@pytest.mark.sampled(9)
def test_numbers_at_the_ends_of_ops_whose_samples_are_bounded(monkeypatch, op):
    monkeypatch.setattr(edge_case, "free", lambda sample: set(sample["inputs"]))
    monkeypatch.setattr(edge_case, "sizes", lambda opdef, arrays: [])
    kit = Conformance("cpu")
    with np.errstate(all="ignore"):
        for case in kit.cases(op):
            if case.kind == "drawn" and not case.index:
                kit.check(case)


def _adding(change: Callable[[Any], Any]) -> Callable[[BuildContext], Bound]:
    """Sums one by one in the order of the elements, of what ``change`` makes of the terms of each."""

    def build(ctx: BuildContext) -> Bound:
        def compute(x: Any, axis: Any) -> Any:
            axes = [int(a) % x.ndim for a in np.ravel(axis)]
            kept = [1 if i in axes else d for i, d in enumerate(x.shape) if ctx.attr("keep_dims") or i not in axes]
            if not x.size:
                return np.zeros(kept, x.dtype)
            others = [d for i, d in enumerate(x.shape) if i not in axes]
            terms = np.moveaxis(x, axes, range(len(axes))).reshape(-1, *others)
            terms = np.concatenate([np.zeros_like(terms[:1]), change(terms)])
            kind = ctx.inputs[0].dtype.accumulator.np
            return np.cumsum(terms, 0, kind)[-1].reshape(kept).astype(x.dtype)

        return Bound(compute)

    return build


@pytest.mark.parametrize(("change", "right"), [(lambda x: x[::-1], True), (lambda x: x[1:], False)])
def test_a_sum_may_be_added_in_any_order_but_not_in_part(change, right):
    host = default_host()
    host.backend("cpu")
    try:
        host.kernels.add(
            KernelDef("Sum", "cpu", _adding(change), "faulty", label="fault", modes=("fresh",)), PLANTER, PLANTER
        )
        kit = Conformance("cpu", pins={"Sum@cpu": f"{PLANTER}.faulty"})
        with np.errstate(all="ignore"):
            found = _found(kit, "Sum", ("edge",))
    finally:
        host.kernels.discard(PLANTER)
    assert (found is None) is right, found
