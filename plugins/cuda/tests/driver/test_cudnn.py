"""What cuDNN is asked for: a stand-in of its front end computes what graphs mean; engines that break promises do not."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from graphdock_cuda.driver.api import Convolution, Unsupported
from graphdock_cuda.driver.cudnn import ALIGNED, Cudnn
from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.testing import FakeCudnn
from graphdock_std.reference import conv as loops

DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}
ROOM = 1 << 20
#: Strides and dilations differ by dim, and so does the padding on both sides.
ASKED = Convolution("y", "float32", (2, 3, 6, 9), (4, 3, 2, 3), (2, 4, 3, 4), (1, 0), (0, 2), (2, 2), (1, 2))


def _lying(array: np.ndarray, last: bool) -> np.ndarray:
    """As it lies in memory, of an array with channels second."""
    return np.ascontiguousarray(np.moveaxis(array, 1, -1) if last else array)


def _run(rig: Any, asked: Convolution, **arrays: np.ndarray) -> np.ndarray:
    """What a plan makes, with channels second."""
    plan = Cudnn(rig.driver, FakeCudnn(rig.driver)).plan(asked, ROOM)
    dims = {"x": asked.x, "w": asked.w, "y": asked.y}
    kind = DTYPES[asked.dtype]
    given = {n: _lying(arrays.get(n, np.zeros(dims[n], np.float32)).astype(kind), asked.last) for n in dims}
    places = {name: rig.put(array) for name, array in given.items()}
    plan.run(rig.s, *places.values(), rig.put(np.zeros(plan.workspace, np.uint8)))
    made = given[asked.makes]
    out = rig.get(places[asked.makes], made.size, kind).reshape(made.shape).astype(np.float32)
    rig.driver.verify()
    return np.moveaxis(out, -1, 1) if asked.last else out


def _reference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The forward convolution of ASKED by the loops of the op's reference."""
    window = {"strides": [1, 2, 2, 1], "dilations": [1, 1, 2, 1], "padding": "EXPLICIT", "data_format": "NHWC"}
    pads = [0, 0, 1, 0, 0, 2, 0, 0]
    nhwc, hwio = x.transpose(0, 2, 3, 1).astype(np.float64), w.transpose(2, 3, 1, 0).astype(np.float64)
    return np.asarray(loops.conv(nhwc, hwio, explicit_paddings=pads, **window)).transpose(0, 3, 1, 2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("last", [True, False])
def test_each_operand_of_the_other_two(rig: Any, dtype: str, last: bool) -> None:
    """The gradients are those of ``sum(y * dy)``, which is linear in each operand."""
    rng = np.random.default_rng(1)
    x, w, dy = (rng.integers(-3, 4, d).astype(np.float32) for d in (ASKED.x, ASKED.w, ASKED.y))
    asked = replace(ASKED, dtype=dtype, last=last)
    near = {"rtol": 4 * float(ml_dtypes.finfo(DTYPES[dtype]).eps)}
    y = _reference(x, w)
    np.testing.assert_allclose(_run(rig, asked, x=x, w=w), y, **near)
    dx = _run(rig, replace(asked, makes="x"), w=w, y=dy)
    dw = _run(rig, replace(asked, makes="w"), x=x, y=dy)
    for _ in range(3):
        i, j = (tuple(rng.integers(0, d)) for d in (x.shape, w.shape))
        one_x, one_w = np.zeros_like(x), np.zeros_like(w)
        one_x[i] = one_w[j] = 1
        np.testing.assert_allclose(dx[i], (_reference(one_x, w) * dy).sum(), **near)
        np.testing.assert_allclose(dw[j], (_reference(x, one_w) * dy).sum(), **near)


def test_volumes(rig: Any) -> None:
    asked = Convolution(
        "y", "float32", (1, 2, 3, 4, 5), (3, 2, 2, 2, 2), (1, 3, 2, 3, 4), (0,) * 3, (0,) * 3, (1,) * 3, (1,) * 3
    )
    x, w = np.ones(asked.x, np.float32), np.ones(asked.w, np.float32)
    assert (_run(rig, asked, x=x, w=w) == 16).all()


def test_which_engine_is_taken(rig: Any) -> None:
    """None that breaks a promise, and tensor cores for float32 only where operands may be rounded; the first that has room."""
    library = FakeCudnn(rig.driver)
    cudnn = Cudnn(rig.driver, library)

    def taken(asked: Convolution, room: int = ROOM) -> str:
        cudnn.plan(asked, room)
        return library.built[-1].engine

    assert taken(ASKED) == "plain"
    assert taken(replace(ASKED, tf32=True)) == "tensor cores"
    assert taken(replace(ASKED, dtype="float16")) == taken(replace(ASKED, dtype="bfloat16")) == "tensor cores"
    assert taken(replace(ASKED, dtype="float16"), 4095) == "plain"
    with pytest.raises(Unsupported, match="no engine is left"):
        taken(ASKED, 511)


def test_plans_and_refusals_are_made_once(rig: Any) -> None:
    library = FakeCudnn(rig.driver)
    cudnn = Cudnn(rig.driver, library)
    plan = cudnn.plan(ASKED, ROOM)
    assert cudnn.plan(replace(ASKED), ROOM) is plan and len(library.built) == 1
    assert (plan.workspace, plan.aligned, plan.convolution) == (512, ALIGNED, ASKED)
    assert cudnn.plan(replace(ASKED, makes="w"), ROOM) is not plan
    assert rig.driver.log.count("cudnn_create_handle") == 1
    library.refuses = {"conv_dgrad"}
    for _ in range(2):
        with pytest.raises(Unsupported, match="cuDNN can't do it: no valid engine"):
            cudnn.plan(replace(ASKED, makes="x"), ROOM)
        library.refuses = ()
    with pytest.raises(Unsupported, match="not asked for float64"):
        cudnn.plan(replace(ASKED, dtype="float64"), ROOM)
    with pytest.raises(Unsupported, match="dims do not fit"):
        cudnn.plan(replace(ASKED, y=(2, 4, 4, 4)), ROOM)


def test_each_gpu_has_a_handle_and_plans(rigs: Any) -> None:
    rig = rigs(gpus=2)
    library = FakeCudnn(rig.driver)
    cudnn = Cudnn(rig.driver, library)
    first = cudnn.plan(ASKED, ROOM)
    rig.driver.set_device(1)
    assert cudnn.plan(ASKED, ROOM) is not first
    assert rig.driver.log.count("cudnn_create_handle") == 2


def test_a_plan_is_recorded_and_replayed_and_none_is_made_meanwhile(rig: Any) -> None:
    d = rig.driver
    cudnn = Cudnn(d, FakeCudnn(d))
    plan = cudnn.plan(ASKED, ROOM)
    x, w = rig.put(np.ones(324, "f4")), rig.put(np.ones(72, "f4"))
    y, room = rig.put(np.zeros(96, "f4")), rig.put(np.zeros(plan.workspace, "u1"))
    d.capture_begin(rig.s)
    plan.run(rig.s, x, w, y, room)
    executable = d.instantiate(d.capture_end(rig.s), rig.s)
    assert not rig.get(y, 96, "f4").any()
    d.graph_launch(executable, rig.s)
    assert rig.get(y, 96, "f4").max() == 18
    d.verify()
    d.capture_begin(rig.s)
    with pytest.raises(Unsupported, match="cudnn_build failed"):
        cudnn.plan(replace(ASKED, makes="w"), ROOM)
    with pytest.raises(CudaError, match="901"):
        d.capture_end(rig.s)


def test_what_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch, rig: Any) -> None:
    monkeypatch.setitem(sys.modules, "cudnn", None)
    with pytest.raises(Unsupported, match=r"front end can't be loaded .*pip install 'graphdock-cuda\[cudnn\]'"):
        Cudnn(rig.driver)
    library = FakeCudnn(rig.driver)

    def missing() -> int:
        raise RuntimeError("Unable to find symbol cudnnGetVersion")

    library.backend_version = missing  # type: ignore[method-assign]
    with pytest.raises(Unsupported, match="cuDNN can't be loaded .Unable to find symbol.*cudnn13"):
        Cudnn(rig.driver, library)
