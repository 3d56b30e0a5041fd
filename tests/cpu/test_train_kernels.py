"""The update kernels through the kernel contract: every dtype, small and blocked, known and unknown shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graphdock.contracts import HOST_MEMORY, ArgInfo, Bound, BuildContext, In, Out, PlanNode, dtypes, errors
from graphdock.contracts.opdef import resolve
from graphdock_cpu.device import CpuFactory
from graphdock_cpu.kernels import optimizers, train, updates
from graphdock_opgen.spec_cases import spec_cases
from graphdock_std._gen.opdefs import OPS

CASES = spec_cases("graphdock_std", lambda op: OPS[op]())
KERNELS = {k.op: k for k in (*train.KERNELS, *optimizers.KERNELS)}
DENSE = [op for op in KERNELS if "Sparse" not in op]
DEVICE = CpuFactory().open(CpuFactory().probe()[0], {})
HYPER = {"alpha": 0.1, "lr": 0.1, "momentum": 0.9, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-4}
HYPER |= {"beta1_power": 0.9**3, "beta2_power": 0.999**3, "weight_decay": 0.1, "rho": 0.9}
HYPER |= {"l1": 0.3, "l2": 0.02, "lr_power": -0.5, "l2_shrinkage": 0.1}
#: More than one block, and not a whole number of them.
SHAPES = [(), (5,), (784, 10), (3, updates.BLOCK + 7), (0, 3)]


def arguments(op: str, shape: tuple[int, ...], dtype: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(len(op))
    kind = dtypes.as_dtype(dtype)
    found = {}
    for arg in OPS[op]().inputs:
        if arg.name == "global_step":
            found[arg.name] = np.array(3)
        elif arg.name in HYPER:
            found[arg.name] = np.array(HYPER[arg.name], kind.accumulator.np)
        else:
            low = 0.1 if arg.mutates and arg.name not in ("var", "mg", "linear") else -1.0
            high = 0.2 if arg.name == "mg" else 1.0
            found[arg.name] = np.asarray(rng.uniform(max(low, -high), high, shape)).astype(kind.np)
    return found


def call(op: str, arrays: dict[str, np.ndarray], attrs: dict[str, Any], known: bool) -> None:
    opdef = OPS[op]()
    infos = tuple(
        ArgInfo(
            arg.name,
            dtypes.as_dtype(arrays[arg.name].dtype),
            arrays[arg.name].shape if known else None,
            HOST_MEMORY,
            variable=arg.mutates,
        )
        for arg in opdef.inputs
    )
    built = KERNELS[op].build(BuildContext(PlanNode(op, "node", opdef, attrs, []), infos, (), DEVICE))
    assert isinstance(built, Bound)
    inputs = list(arrays.values())
    scratch = [np.full(s.shape, 5, s.dtype.np) for s in built.scratch]
    if built.args is None:
        built.compute(*inputs, *scratch)
        return
    pick = {In: lambda a: inputs[a.index], Out: lambda a: scratch[a.index]}
    built.compute(*(pick[type(a)](a) for a in built.args))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("op", "attrs"), [(op, {}) for op in DENSE] + [("ResourceApplyMomentum", {"use_nesterov": True})]
)
@pytest.mark.sampled(4)
def test_update_agrees_with_the_formula(
    op: str, attrs: dict[str, Any], dtype: str, shape: tuple[int, ...], known: bool
) -> None:
    attrs = {a.name: a.default for a in OPS[op]().attrs} | attrs
    arrays = arguments(op, shape, dtype)
    want = resolve(CASES[op]["reference"])(**{n: a.copy() for n, a in arrays.items()}, **attrs)
    before = arrays[("delta" if "delta" in arrays else "grad")].copy()
    call(op, arrays, attrs, known)
    mutated = [arg.name for arg in OPS[op]().inputs if arg.mutates]
    for name, w in zip(mutated, want if isinstance(want, tuple) else (want,), strict=True):
        tolerance = CASES[op]["tolerances"][dtype]
        np.testing.assert_allclose(arrays[name].astype(float), w.astype(float), **tolerance, err_msg=name)
        assert arrays[name].dtype == w.dtype
    np.testing.assert_array_equal(arrays["delta" if "delta" in arrays else "grad"], before)


def test_a_gradient_of_another_shape_is_named() -> None:
    arrays = arguments("ResourceApplyAdagrad", (4, 3), "float32")
    arrays["grad"] = np.ones((1, 3), np.float32)
    with pytest.raises(errors.InvalidArgumentError, match="grad has not the variable's shape") as caught:
        call("ResourceApplyAdagrad", arrays, {}, known=False)
    assert caught.value.expected == "[4, 3]" and caught.value.got == "[1, 3]"


def test_a_gradient_that_surely_does_not_fit_is_refused_when_the_kernel_is_built() -> None:
    arrays = arguments("ResourceApplyAdagrad", (4, 3), "float32")
    with pytest.raises(errors.ShapeError, match="grad has not the shape of var"):
        call("ResourceApplyAdagrad", arrays | {"grad": np.ones((1, 3), np.float32)}, {}, known=True)
    with pytest.raises(errors.DTypeError, match="grad has not the dtype of var"):
        call("ResourceApplyAdagrad", arrays | {"grad": np.ones((4, 3))}, {}, known=True)


def test_bfloat16_learns_slowly_decaying_moments() -> None:
    """beta2 = 0.999 rounds to 1 in bfloat16; as float32 it does not."""
    arrays = arguments("ResourceApplyAdam", (100,), "bfloat16")
    arrays["v"][:] = 0
    before = arrays["var"].copy()
    call("ResourceApplyAdam", arrays, {}, known=True)
    assert (arrays["v"].astype(float) > 0).all() and not np.array_equal(before, arrays["var"])


@pytest.mark.parametrize("wrong", [-1, 4])
def test_a_row_outside_the_variable_is_named(wrong: int) -> None:
    arrays = {
        "var": np.ones((4, 2), np.float32),
        "alpha": np.array(0.5, np.float32),
        "delta": np.ones((2, 2), np.float32),
        "indices": np.array([1, wrong], np.int32),
    }
    with pytest.raises(errors.InvalidArgumentError, match="a row to update is not there") as caught:
        call("ResourceSparseApplyGradientDescent", arrays, {}, known=True)
    assert caught.value.got == str(wrong) and caught.value.expected == "rows from 0 to 3"
    np.testing.assert_array_equal(arrays["var"], 1.0)


@pytest.mark.parametrize("op", [op for op in KERNELS if op not in DENSE])
def test_sparse_updates_of_all_rows_are_the_dense_update(op: str) -> None:
    dense = op.replace("Sparse", "")
    attrs = {a.name: a.default for a in OPS[op]().attrs}
    arrays = arguments(dense, (6, 3), "float64")
    rows = np.array([5, 0, 3, 1, 4, 2])
    name = "delta" if "delta" in arrays else "grad"
    sparse = {}
    for arg in OPS[op]().inputs:
        source = name if arg.name in ("grad", "delta") else arg.name
        sparse[arg.name] = rows if arg.name == "indices" else arrays[source].copy()
    given = "delta" if "delta" in sparse else "grad"
    sparse[given] = sparse[given][rows]
    call(dense, arrays, attrs, known=True)
    call(op, sparse, attrs, known=True)
    for held in ("var", "accum"):
        if held in arrays:
            np.testing.assert_array_equal(sparse[held], arrays[held])
