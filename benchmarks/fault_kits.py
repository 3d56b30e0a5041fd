"""Faults planted in other systems' extensions: which of them their own kits find. Run where torch, jax and onnx are installed:

    python benchmarks/fault_kits.py > benchmarks/results/fault_kits.txt

``torch.library.opcheck`` gets custom ops of Python with the fault; ``gradcheck`` is what PyTorch tells an author to run beside it;
jax's ``check_grads`` of a callback stands for its FFI, which has no kit; ``onnx.backend.test`` has what a backend of ONNX is given:
an array and the right one, compared within 0.1%. What was read and not tried stands in :data:`READ`, because no wheel has it: the
tests of OpenReg, PyTorch's example of a backend, and ONNX Runtime's ``BaseTester``, with which its execution providers are tested.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

#: Calls so far, for faults that remember.
_calls: dict[str, Any] = {}


def _late(key: str, x: Any) -> Any:
    """Return what the first call gave, in every call."""
    return _calls.setdefault(key, x)


def torch_ops(torch: Any) -> dict[str, tuple[Callable[..., Any], Callable[..., Any] | None, Callable[..., Any] | None]]:
    """Fault -> (kernel, fake, backward) of an op that doubles; None for the right one."""

    def stale(x: Any) -> Any:
        return _late("stale", x * 2).clone() if _late("stale", x * 2).shape == x.shape else x * 2

    def tail(x: Any) -> Any:
        y = x * 2
        y.view(-1)[4096:] = 0
        return y

    def unwritten(x: Any) -> Any:
        return torch.empty_like(x)

    def one_dtype(x: Any) -> Any:
        return x * 2.5 if x.dtype == torch.float64 else x * 2

    def writes(x: Any) -> Any:
        x.mul_(2)
        return x.clone()

    def strides(x: Any) -> Any:
        return torch.as_strided(x, x.shape, torch.empty(x.shape).stride()).clone() * 2

    return {
        "none": (lambda x: x * 2, None, None),
        "a wrong value": (lambda x: x * 2.001, None, None),
        "a wrong value for one dtype": (one_dtype, None, None),
        "a wrong value for one rank": (lambda x: x * (3 if x.ndim == 3 else 2), None, None),
        "it writes its input": (writes, None, None),
        "it leaves its output as it was": (unwritten, None, None),
        "it draws": (lambda x: x * 2 + torch.rand(()) * 1e-6, None, None),
        "it keeps its first result": (stale, None, None),
        "it returns its input": (lambda x: x, None, None),
        "it misreads strides": (strides, None, None),
        "a view of other elements": (lambda x: x.flip(0) * 2, None, None),
        "elements beyond a block are left out": (tail, None, None),
        "NaN becomes 0": (lambda x: torch.nan_to_num(x * 2, nan=0.0), None, None),
        "infinity becomes the largest number": (lambda x: torch.nan_to_num(x * 2, nan=float("nan")), None, None),
        "a wrong dtype where shapes are unknown": (lambda x: x * 2, lambda x: x.to(torch.float16), None),
        "a wrong shape where shapes are unknown": (lambda x: x * 2, lambda x: x.new_empty((*x.shape, 1)), None),
        "it can't do unknown shapes": (lambda x: x * 2, lambda x: x.new_empty([int(d) for d in x.shape]), None),
        "a wrong gradient": (lambda x: x * 2, None, lambda ctx, g: g * 3),
        "a gradient that stops": (lambda x: x * 2, None, lambda ctx, g: None),
    }


def of_torch() -> dict[str, dict[str, list[Any]]]:
    import torch

    found: dict[str, dict[str, list[Any]]] = {"opcheck": {}, "gradcheck": {}}
    for number, (name, (kernel, fake, backward)) in enumerate(torch_ops(torch).items()):
        _calls.clear()
        op = torch.library.custom_op(f"planted::f{number}", mutates_args=())(_typed(torch, kernel))
        op.register_fake(fake or (lambda x: torch.empty_like(x)))
        op.register_autograd(backward or (lambda ctx, g: g * 2))
        inputs = [torch.randn(2, 3, dtype=torch.float64, requires_grad=True)]
        found["opcheck"][name] = _said(lambda op=op, inputs=inputs: torch.library.opcheck(op, (inputs[0],)))
        found["gradcheck"][name] = _said(lambda op=op, inputs=inputs: torch.autograd.gradcheck(op, inputs))
    return found


def _typed(torch: Any, kernel: Callable[..., Any]) -> Callable[..., Any]:
    def planted(x: torch.Tensor) -> torch.Tensor:
        return kernel(x)

    planted.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
    return planted


def of_jax() -> dict[str, dict[str, list[Any]]]:
    import jax
    import jax.numpy as jnp
    from jax.test_util import check_grads

    def halved(x: Any) -> Any:
        return np.asarray(x) * 2

    def writes(x: Any) -> Any:
        made = np.asarray(x)
        made.setflags(write=True)
        made *= 2
        return made

    kernels: dict[str, tuple[Callable[..., Any], float, Any]] = {
        "none": (halved, 2.0, np.float32),
        "a wrong value": (lambda x: halved(x) * np.float32(1.001), 2.0, np.float32),
        "it writes its input": (writes, 2.0, np.float32),
        "it leaves its output as it was": (lambda x: np.empty_like(x), 2.0, np.float32),
        "it draws": (lambda x: halved(x) + np.float32(np.random.rand() * 1e-3), 2.0, np.float32),
        "a wrong dtype where shapes are unknown": (lambda x: halved(x).astype(np.float64), 2.0, np.float32),
        "a wrong shape where shapes are unknown": (lambda x: halved(x)[None], 2.0, np.float32),
        "a wrong gradient": (halved, 3.0, np.float32),
        "NaN becomes 0": (lambda x: np.nan_to_num(halved(x), nan=0.0), 2.0, np.float32),
    }
    found: dict[str, list[Any]] = {}
    for name, (kernel, slope, dtype) in kernels.items():
        x = jnp.asarray(np.random.default_rng(0).standard_normal((2, 3)), jnp.float32)
        op = _callback(jax, kernel, slope, dtype)
        found[name] = _said(lambda op=op, x=x: check_grads(op, (x,), order=1, modes=["rev"], atol=1e-2, rtol=1e-2))
    return {"check_grads": found}


def _callback(jax: Any, kernel: Callable[..., Any], slope: float, dtype: Any) -> Any:
    """A differentiable function of a kernel of the host's."""

    @jax.custom_vjp
    def op(x: Any) -> Any:
        return jax.pure_callback(kernel, jax.ShapeDtypeStruct(x.shape, dtype), x)

    op.defvjp(lambda x: (op(x), None), lambda _, g: (g * slope,))
    return op


def _said(check: Callable[[], Any]) -> list[Any]:
    """Return whether a check finds something, and its last line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            check()
        except Exception as error:  # noqa: BLE001 - whatever a kit raises is what it has found
            return [
                True,
                f"{type(error).__name__}: {str(error).strip().splitlines()[-1][:120] if str(error).strip() else ''}",
            ]
    return [False, ""]


def onnx_kernels() -> dict[str, Callable[[Any], Any]]:
    """Fault -> what computes ONNX's ``Neg``."""

    def writes(x: Any) -> Any:
        made = -x
        x *= 2
        return made

    def tail(x: Any) -> Any:
        made = -x
        made.reshape(-1)[4096:] = 0
        return made

    return {
        "none": lambda x: -x,
        "a wrong value": lambda x: x * x.dtype.type(-1.0005),
        "a wrong value for one dtype": lambda x: x * (-1.25 if x.dtype == np.float64 else x.dtype.type(-1)),
        "a wrong value for one rank": lambda x: x * x.dtype.type(-1.5 if x.ndim == 4 else -1),
        "it writes its input": writes,
        "it leaves its output as it was": np.empty_like,
        "it draws": lambda x: -x + x.dtype.type(np.random.default_rng().random() * 1e-6),
        "it keeps its first result": lambda x: _late(f"onnx {x.shape}", -x),
        "it returns its input": lambda x: x,
        "a view of other elements": lambda x: -x[::-1],
        "elements beyond a block are left out": tail,
        "NaN becomes 0": lambda x: np.nan_to_num(-x, nan=0.0, posinf=np.inf, neginf=-np.inf),
        "infinity becomes the largest number": lambda x: np.nan_to_num(-x, nan=np.nan),
    }


def of_onnx() -> dict[str, dict[str, list[Any]]]:
    from onnx.backend.test.loader import load_model_tests
    from onnx.backend.test.runner import Runner

    with warnings.catch_warnings(action="ignore"):
        cases = [case for case in load_model_tests(kind="node") if case.name in ("test_neg", "test_neg_example")]

    def run(kernel: Callable[[Any], Any]) -> None:
        for case in cases:
            for given, wanted in case.data_sets:
                Runner.assert_similar_outputs(list(wanted), [kernel(np.array(given[0]))], case.rtol, case.atol)

    found = {}
    for name, kernel in onnx_kernels().items():
        _calls.clear()
        found[name] = _said(lambda kernel=kernel: run(kernel))
    return {"onnx": found}


#: Faults of parts for which the tool has nothing that could look at them.
PARTS = (
    *("pattern: it forgets the bias", "pattern: its gradient stops", "compiler: a result that is off"),
    *("fact: neutral: 0 of a hypotenuse", "fact: scalar: another factor"),
    *(
        "event: wait does nothing",
        "event: an event passes at once",
        "event: one pool for all queues",
        "event: blocks leak",
    ),
    *("event: a launch fences its queue", "event: a kernel reads host arguments late", "clash: one op type"),
)
#: Tool -> faults that it would find, as far as reading its tests says. Others it would not, or has nothing for.
READ: dict[str, set[str]] = {
    # strided inputs and `out=` against the same op, no reference; streams and events are made and called, what they order is not
    "OpenReg": {"it misreads strides", "it leaves its output as it was", "clash: one op type"},
    # expected values of each op's tests, run on every provider; a session each; inferred shapes are compared
    "ORT": {
        *(
            "a wrong value",
            "a wrong value for one dtype",
            "a wrong value for one rank",
            "it leaves its output as it was",
        ),
        *("it returns its input", "a view of other elements", "a wrong dtype where shapes are unknown"),
        *("a wrong shape where shapes are unknown", "a wrong gradient", "a gradient that stops"),
    },
}


def clash_of_torch() -> list[Any]:
    """Return whether a second library may define an op of the same name."""
    import torch

    first = torch.library.Library("planted_twice", "FRAGMENT")
    second = torch.library.Library("planted_twice", "FRAGMENT")
    first.define("legs(Tensor x) -> Tensor")
    return _said(lambda: second.define("legs(Tensor x) -> Tensor"))


def lines(found: dict[str, dict[str, list[Any]]], versions: str) -> list[str]:
    """The table: x is found, . is not, - is nothing that could be planted; in brackets what was read and not tried."""
    tools = ("opcheck", "gradcheck", "check_grads", "onnx")
    faults = [name for name in dict.fromkeys([*found["opcheck"], *PARTS]) if name != "none"]
    rows = []
    for fault in faults:
        tried = [found.get(tool, {}).get(fault) for tool in tools]
        cells = ["x", *("-" if seen is None else "x" if seen[0] else "." for seen in tried)]
        rows.append([fault, *cells, *("(x)" if fault in READ[tool] else "(.)" for tool in READ)])
    heads = ["fault", "graphdock", *tools, *READ]
    counts = [str(sum("x" in row[i] for row in rows)) for i in range(1, len(heads))]
    shown = [heads, *rows, [f"{len(faults)} faults, of which found", *counts]]
    text = [f"{row[0]:<46}" + "".join(f"{cell:>13}" for cell in row[1:]) for row in shown]
    return [
        f"{versions}. x found, . not found, - not planted; in brackets: read, not tried.",
        "What is left unwritten is found where the memory differs by chance.",
        "",
        *text,
    ]


def main() -> None:
    found: dict[str, dict[str, list[Any]]] = {}
    versions = []
    for module, run in {"torch": of_torch, "jax": of_jax, "onnx": of_onnx}.items():
        if importlib.util.find_spec(module) is None:
            raise SystemExit(f"no {module} here: pip install torch==2.13.0 jax onnx")
        versions.append(f"{module} {importlib.import_module(module).__version__}")
        found |= run()
    found["opcheck"]["clash: one op type"] = clash_of_torch()
    wrong = [tool for tool, rows in found.items() if rows["none"][0]]
    if wrong:
        raise SystemExit(f"{wrong} find something in an op without a fault: {found[wrong[0]]['none']}")
    print("\n".join(lines(found, ", ".join(versions))))


if __name__ == "__main__":
    main()
