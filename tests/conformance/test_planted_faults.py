"""Every kind of fault the kit is there for, planted in a tiny op library of its own, is found; and the same library without
the fault passes.
"""

from __future__ import annotations

import itertools
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graphdock.contracts import ArgDef, Bound, BuildContext, KernelDef, OpDef, TypeVarDef, ViewRule
from graphdock.errors import InvalidArgumentError
from graphdock.plugin.host import default_host
from graphdock_testing.conformance import Conformance, ConformanceError

LIBRARY = "planted_faults_library"
_numbers = itertools.count()


def double_gradient(op: Any, grad: Any) -> list[Any]:
    return [grad + grad]


def wrong_gradient(op: Any, grad: Any) -> list[Any]:
    return [grad + grad + grad]


def right_decomposition(*, x: Any, **_: Any) -> list[Any]:
    return [x + x]


def wrong_decomposition(*, x: Any, **_: Any) -> list[Any]:
    return [x + x + x]


def oracle(x: Any) -> Any:
    return np.array([2 * v for v in x.ravel().tolist()], x.dtype).reshape(x.shape)


def right_shape(ctx: Any) -> list[Any]:
    if ctx.shape("x") == (13,):
        raise ctx.fail("thirteen is unlucky")
    return [ctx.shape("x")]


def wrong_shape(ctx: Any) -> list[Any]:
    dims = ctx.shape("x")
    return [dims if dims is None else (*dims[:-1], None if dims[-1] is None else dims[-1] + 1) if dims else dims]


def no_check(ctx: Any) -> list[Any]:
    return [ctx.shape("x")]


def right(ctx: BuildContext) -> Callable[..., Any]:
    return lambda x, *out: np.add(x, x, *out)


@pytest.fixture
def planted() -> Iterator[Callable[..., Conformance]]:
    """Makes a kit for an op ``planted.Double`` with the given kernel and facts."""
    host = default_host()

    def make(build: Any = right, fields: dict[str, Any] | None = None, **facts: str) -> Conformance:
        module = types.ModuleType(LIBRARY)
        vars(module).update({n: v for n, v in globals().items() if callable(v)}, __path__=[str(Path(__file__).parent)])
        sys.modules[LIBRARY] = module
        spec: dict[str, Any] = {
            "gradient": f"{LIBRARY}:double_gradient",
            "decomposition": f"{LIBRARY}:right_decomposition",
            "shape_fn": f"{LIBRARY}:right_shape",
            "reference": f"{LIBRARY}:oracle",
            **{n: f"{LIBRARY}:{v}" for n, v in facts.items()},
        }
        opdef = OpDef(
            "planted.Double",
            inputs=(ArgDef("x", "T", "[*S]"),),
            outputs=(ArgDef("y", "T"),),
            types=(TypeVarDef("T", ("float32", "float64")),),
            gradient_kinds={"x": "fn"},
            **spec,
        )
        host.ops.add_library({opdef.name: lambda: opdef}, {}, LIBRARY, specs=LIBRARY)
        name = f"planted_{next(_numbers)}"
        kernel = KernelDef("planted.Double", "cpu", build, name=name, label="fault", **fields or {})
        host.kernels.add(kernel, LIBRARY, LIBRARY)
        return Conformance("cpu", pins={"planted.Double@cpu": f"{LIBRARY}.{name}"})

    yield make
    host.ops.discard(LIBRARY)
    host.kernels.discard(LIBRARY)
    sys.modules.pop(LIBRARY, None)


def faults(kit: Conformance) -> list[str]:
    found = []
    for case in kit.cases("planted.Double"):
        try:
            kit.check(case)
        except ConformanceError as error:
            found.append(str(error))
    return found


def test_the_library_without_a_fault_passes(planted: Callable[..., Conformance]) -> None:
    assert faults(planted()) == []


def wrong_value(ctx: BuildContext) -> Any:
    return lambda x, *out: np.multiply(x, x.dtype.type(2.001), *out)


def wrong_for_float64(ctx: BuildContext) -> Any:
    factor = 2.001 if ctx.inputs[0].dtype.name == "float64" else 2
    return lambda x, *out: np.multiply(x, x.dtype.type(factor), *out)


def writes_its_input(ctx: BuildContext) -> Any:
    def compute(x: Any, *out: Any) -> Any:
        result = np.add(x, x, *out)
        np.copyto(x, 0)
        return result

    return compute


def ignores_out(ctx: BuildContext) -> Any:
    return lambda x, *out: x + x


def draws(ctx: BuildContext) -> Any:
    rng = np.random.default_rng()

    def compute(x: Any, *out: Any) -> Any:
        noise = 1 + rng.integers(0, 8, x.shape) * np.finfo(x.dtype).eps
        return np.multiply(x + x, noise.astype(x.dtype), *out)

    return compute


def keeps_a_buffer(ctx: BuildContext) -> Any:
    first: list[Any] = []

    def compute(x: Any, *out: Any) -> Any:
        if not first:
            first.append(x + x)
        if not out:
            return first[0]
        return np.copyto(out[0], first[0])

    return compute


def adds_to_out(ctx: BuildContext) -> Any:
    """Takes for granted that its output is zero before."""

    def compute(x: Any, *out: Any) -> Any:
        if not out:
            return x + x
        out[0][...] += x + x
        return None

    return compute


def only_planned(ctx: BuildContext) -> Any:
    if ctx.fresh:
        return lambda x: x
    return right(ctx)


def fails_in_fresh(ctx: BuildContext) -> Any:
    def compute(x: Any, out: Any) -> None:
        np.add(x, x, out)

    return compute


def reads_memory_order(ctx: BuildContext) -> Any:
    """Takes a strided input for a contiguous one."""

    def compute(x: Any, *out: Any) -> Any:
        base = x if x.base is None else x.base
        flat = np.ndarray(x.shape, x.dtype, base) if not x.flags.c_contiguous else x
        return np.add(flat, flat, *out)

    return compute


def wrong_dtype(ctx: BuildContext) -> Any:
    if ctx.fresh:
        return lambda x: (x + x).astype(np.float16)
    return right(ctx)


KERNEL_FAULTS = {
    "a wrong value": (wrong_value, "elements differ"),
    "a wrong value for one dtype": (wrong_for_float64, "float64"),
    "a kernel that writes its input": (writes_its_input, "wrote its input|read-only"),
    "a kernel that ignores out": (ignores_out, "left elements of its output"),
    "a kernel that is not deterministic": (draws, "other bits the second time"),
    "a kernel that keeps a stale buffer": (keeps_a_buffer, "step 2"),
    "a kernel that takes its output for zero": (adds_to_out, "elements differ"),
    "a wrong value in mode fresh": (only_planned, "fresh"),
    "a kernel without mode fresh": (fails_in_fresh, "fresh|missing 1 required"),
    "a wrong dtype in mode fresh": (wrong_dtype, "float16"),
}


@pytest.mark.parametrize("name", KERNEL_FAULTS)
@pytest.mark.sampled(4)
def test_a_faulty_kernel_is_found(planted: Callable[..., Conformance], name: str) -> None:
    build, words = KERNEL_FAULTS[name]
    found = faults(planted(build))
    assert found
    assert any(_says(words, f) for f in found), found


def _says(words: str, text: str) -> bool:
    return any(w in text for w in words.split("|"))


def draws_wildly(ctx: BuildContext) -> Any:
    rng = np.random.default_rng()
    return lambda x, *out: np.multiply(x + x, 1 + rng.random(x.shape, x.dtype) / 10, *out)


@pytest.mark.parametrize(("build", "passes"), [(draws, True), (draws_wildly, False)])
def test_a_kernel_that_owns_up_to_other_bits_is_compared_within_the_tolerances(
    planted: Callable[..., Conformance], build: Any, passes: bool
) -> None:
    found = faults(planted(build, {"deterministic": False}))
    assert (found == []) == passes


def test_a_kernel_that_misreads_strides_is_found(planted: Callable[..., Conformance]) -> None:
    found = faults(planted(reads_memory_order, {"layout": "strided"}))
    assert found and all("strided" in f for f in found if "gradient" not in f)


def test_the_planner_copies_for_a_kernel_that_wants_no_strides(planted: Callable[..., Conformance]) -> None:
    assert faults(planted(reads_memory_order)) == []


def test_a_view_of_other_elements_is_found(planted: Callable[..., Conformance]) -> None:
    build = lambda ctx: Bound((lambda x, *out: x) if ctx.outputs[0].mode.kind != "planned" else np.copyto)  # noqa: E731
    rule = {"views": {"y": ViewRule("x", contiguous=True)}, "modes": ("planned", "fresh", "view")}
    assert faults(planted(build, rule))


def clears_its_output_first(ctx: BuildContext) -> Any:
    """Right, but when the output takes over the input's buffer."""

    def compute(x: Any, *out: Any) -> Any:
        if not out:
            return x + x
        out[0].fill(0)
        return np.add(out[0], x + x, out[0])

    return compute


def test_a_kernel_that_can_not_work_in_place_is_found(planted: Callable[..., Conformance]) -> None:
    found = faults(
        planted(clears_its_output_first, {"inplace": {"y": ("x",)}, "modes": ("planned", "fresh", "inplace")})
    )
    assert found and all("computed" in f for f in found if "gradient" not in f)


def test_a_view_that_reads_its_input_is_found(planted: Callable[..., Conformance]) -> None:
    """The planner makes a view of a planned buffer once, long before the first step."""

    def build(ctx: BuildContext) -> Any:
        return right(ctx) if ctx.outputs[0].mode.kind == "planned" else lambda x: x + x

    rule = {"views": {"y": ViewRule("x", contiguous=True)}, "modes": ("planned", "fresh", "view")}
    found = faults(planted(build, rule))
    assert found and all("strided" in f or "computed" in f for f in found if "gradient" not in f)


SPEC_FAULTS = {
    "a wrong gradient": ({"gradient": "wrong_gradient"}, "gradient of x is not the numeric one"),
    "a wrong decomposition": ({"decomposition": "wrong_decomposition"}, "decomposition"),
    "a wrong shape rule": ({"shape_fn": "wrong_shape"}, "planned"),
    "an error that is not raised": ({"shape_fn": "no_check"}, "nothing was raised"),
}


@pytest.mark.parametrize("name", SPEC_FAULTS)
@pytest.mark.sampled(2)
def test_a_faulty_spec_is_found(planted: Callable[..., Conformance], name: str) -> None:
    facts, words = SPEC_FAULTS[name]
    found = faults(planted(**facts))
    assert any(words in f for f in found), found


def test_an_error_of_another_class_is_found(planted: Callable[..., Conformance]) -> None:
    def build(ctx: BuildContext) -> Any:
        def compute(x: Any, *out: Any) -> Any:
            raise ValueError("an unlucky number")

        return compute

    found = faults(planted(build, shape_fn="no_check"))
    assert any("matches 'unlucky', but the error is an InternalError" in f for f in found)


@pytest.mark.parametrize(
    ("stated", "found"), [("InvalidArgumentError", False), ("GraphdockError", False), ("NotFoundError", True)]
)
def test_the_class_of_an_error_sample_is_held(planted: Callable[..., Conformance], stated: str, found: bool) -> None:
    """The text fits; what the op raises may be a subclass of what is stated."""
    kit = planted()
    (case,) = [c for c in kit.cases("planted.Double") if c.kind == "error"]
    stating = [{**case.sample, "error": stated}]
    case = replace(case, data={**case.data, "errors": stating}, index=0)
    if not found:
        kit.check(case)
        return
    with pytest.raises(ConformanceError, match="expected an error of class NotFoundError, got"):
        kit.check(case)


def test_an_error_of_another_text_is_found(planted: Callable[..., Conformance]) -> None:
    def build(ctx: BuildContext) -> Any:
        def compute(x: Any, *out: Any) -> Any:
            raise InvalidArgumentError("no")

        return compute

    found = faults(planted(build, shape_fn="no_check"))
    assert any("expected an error that matches 'unlucky', got InvalidArgumentError: no" in f for f in found)
