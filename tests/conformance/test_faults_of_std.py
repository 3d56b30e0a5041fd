"""Faults planted into the standard library are found: a wrong element of a result, a gradient that is too large, a wrong shape."""

from __future__ import annotations

import dataclasses
import importlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from graphdock.contracts import Bound, BuildContext
from graphdock.contracts.opdef import resolve
from graphdock.opdef.shape_rule import ShapeRule
from graphdock.plugin.host import default_host
from graphdock_testing.conformance import Conformance, ConformanceError

pytestmark = pytest.mark.slow
PLANTER = "faults_of_std"
GRADIENT_OPS = """
    Conv2D MaxPool LRN Cumprod MatrixSolve MatrixInverse CropAndResize Lgamma SegmentMean GatherNd ResizeBilinear FFT
""".split()
#: One or more of each family.
KERNELS = """
    Conv2D Conv2DBackpropInput Conv3D DepthwiseConv2dNative MaxPool AvgPoolGrad MaxPoolWithArgmax Dilation2D
    LRN FusedBatchNorm DepthToSpace SpaceToBatchND ExtractImagePatches Lgamma Betainc Xlogy TruncateMod
    SegmentMax UnsortedSegmentProd TopKV2 Bincount TensorScatterAdd ReverseSequence Cumprod SparseTensorDenseMatMul
    Cholesky MatrixTriangularSolve LogMatrixDeterminant MatrixSetDiag FFT IRFFT ComplexAbs
    ResizeBilinear RGBToHSV CropAndResize NonMaxSuppressionV3 BitwiseXor FakeQuantWithMinMaxVars Dequantize
    CTCLoss Substr StringToNumber StringToHashBucketFast DecodeRaw
""".split()
#: By pattern or by function; with one output or several.
SHAPES = """
    MatMul Transpose Concat Pack StridedSlice Gather Tile Pad OneHot Sum ArgMax Conv2D MaxPool ResizeBilinear DepthToSpace
    SegmentSum TopKV2 Cholesky RFFT ExtractImagePatches SparseTensorDenseMatMul BroadcastTo Range
""".split()
_numbers = itertools.count()


def _spoil(array: Any) -> None:
    """One element becomes another."""
    if not isinstance(array, np.ndarray) or array.size == 0 or not array.flags.writeable:
        return
    at = (0,) * array.ndim
    kind = array.dtype.kind
    if kind == "O":
        array[at] = bytes(array[at]) + b"!"
    elif kind == "b":
        array[at] = not array[at]
    else:
        array[at] = array.dtype.type(array[at] + 1)


def _faulty(build: Callable[[BuildContext], Any]) -> Callable[[BuildContext], Any]:
    """The kernel, whose every result has a wrong first element."""

    def planted(ctx: BuildContext) -> Any:
        made = build(ctx)
        bound = made if isinstance(made, Bound) else Bound(made)
        compute = bound.compute

        def run(*args: Any) -> Any:
            result = compute(*args)
            if not ctx.fresh:
                for array in args[-len(ctx.outputs) - len(bound.scratch) : len(args) - len(bound.scratch)]:
                    _spoil(array)
                return result
            given = result if isinstance(result, tuple) else (result,)
            copies = tuple(np.array(a, copy=True) for a in given)
            for array in copies:
                _spoil(array)
            return copies if isinstance(result, tuple) else copies[0]

        return dataclasses.replace(bound, compute=run)

    return planted


@pytest.fixture
def planter() -> Iterator[Callable[[str], Conformance]]:
    host = default_host()
    host.backend("cpu")

    def plant(op: str) -> Conformance:
        right = next(r.kernel for r in host.kernels.for_op(op) if r.plugin == "cpu" and not r.kernel.label)
        name = f"faulty_{next(_numbers)}"
        faulty = dataclasses.replace(right, build=_faulty(right.build), name=name, label="fault")
        host.kernels.add(faulty, PLANTER, PLANTER)
        return Conformance("cpu", pins={f"{op}@cpu": f"{PLANTER}.{name}"})

    yield plant
    host.kernels.discard(PLANTER)


def _finds(kit: Conformance, op: str, kind: str) -> bool:
    for case in kit.cases(op):
        if case.kind != kind:
            continue
        try:
            kit.check(case)
        except ConformanceError:
            return True
    return False


@pytest.mark.parametrize("op", KERNELS)
@pytest.mark.sampled(2)
def test_a_wrong_element_is_found(planter: Callable[[str], Conformance], op: str) -> None:
    assert _finds(planter(op), op, "value")


@pytest.fixture
def forgetful() -> Iterator[None]:
    """What specs name is looked up anew: a module's attribute that a test replaces is seen, and not remembered after it."""
    resolve.cache_clear()
    yield
    resolve.cache_clear()


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("op", GRADIENT_OPS)
@pytest.mark.sampled(2)
def test_a_gradient_that_is_too_large_is_found(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kit = Conformance("cpu")
    target = kit.host.ops.get(op).gradient
    assert isinstance(target, str)
    module, _, name = target.partition(":")
    right = getattr(importlib.import_module(module), name)

    def larger(*args: Any) -> Any:
        found = right(*args)
        many = isinstance(found, (list, tuple))
        made = [None if g is None else g * _one_and_a_half(g) for g in (found if many else [found])]
        return made if many else made[0]

    monkeypatch.setattr(importlib.import_module(module), name, larger)
    assert _finds(kit, op, "gradient")


def _one_and_a_half(grad: Any) -> Any:
    import graphdock as tf

    return tf.cast(1.5, getattr(grad, "values", grad).dtype)


def _longer(shape: Any) -> Any:
    """A shape with one more element along its last axis; of rank 1 where it had none."""
    if shape is None or (shape and not isinstance(shape[-1], int)):
        return shape
    return (*shape[:-1], shape[-1] + 1) if shape else (1,)


@pytest.mark.parametrize("op", SHAPES)
@pytest.mark.sampled(2)
def test_a_shape_rule_that_is_off_by_one_is_found(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = ShapeRule.infer

    def wrong(self: ShapeRule, *args: Any, **more: Any) -> list[Any]:
        shapes = right(self, *args, **more)
        return [*map(_longer, shapes)] if self.opdef.name == op else shapes

    kit = Conformance("cpu")
    monkeypatch.setattr(ShapeRule, "infer", wrong)
    assert _finds(kit, op, "value")
