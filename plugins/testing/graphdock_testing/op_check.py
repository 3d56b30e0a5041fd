"""``opcheck(op, args)``: what conformance would check of an op, on inputs of one's own.

    opcheck("geo.Haversine", [lat1, lon1, lat2, lon2])          # raises ConformanceError where something is wrong
    opcheck(haversine, {"lat1": a, ...}, {"unit": "km"})         # a tf.custom_op; attributes by name

Each kernel of the op that can run here is pinned and checked (:func:`graphdock_testing.value_check.check_with`): its values
against the op's reference where there is one, in every mode, with its inputs, margins and scratch buffers watched, its dtypes and
the shape rule held against what it gives, twice the same bits; kernels against one another; and gradients against central
differences.
The model is ``torch.library.opcheck``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.opdef import OpDef
from graphdock.dtypes import as_dtype
from graphdock.errors import (
    DeviceUnavailable,
    GraphdockError,
    InvalidArgumentError,
    KernelNotFoundError,
    NotFoundError,
    did_you_mean,
    format_error,
)
from graphdock.plugin.host import Host, default_host
from graphdock.plugin.kernel_registry import RegisteredKernel

from graphdock_testing.bench import Bench, Results, agree
from graphdock_testing.case import Case, ConformanceError, Missing
from graphdock_testing.gradient_case import check_gradient
from graphdock_testing.value_check import check_with
from graphdock_testing.watching import Watching

__all__ = ["SUCCESS", "opcheck"]

SUCCESS = "SUCCESS"
#: Plugins that are no backends: kernels of the process itself, and the host's.
_NO_BACKEND = ("user", "host")


def opcheck(
    op: Any,
    args: Sequence[Any] | Mapping[str, Any],
    attrs: Mapping[str, Any] | None = None,
    *,
    other: Sequence[Any] | Mapping[str, Any] | None = None,
    backends: Sequence[str] = ("cpu",),
    kernels: Sequence[str] | None = None,
    host: Host | None = None,
    tolerance: Mapping[str, float] | None = None,
    raise_exception: bool = True,
) -> dict[str, str]:
    """Check an op, its gradient and its kernels on the given inputs.

    Args:
      op: op type, or the function that ``tf.custom_op`` made.
      args: what the op takes, in order or by name: arrays; a list for a list argument; None for an optional one that is absent; of
        a variable, the value that it holds.
      attrs: attributes, and dtypes that no input binds.
      other: a second set of inputs of the same shapes and dtypes, with which kernels run in between; default: floating inputs times
        0.75.
      backends: plugins whose kernels are checked, beside those of the op's own package and of this process.
      kernels: full names of those to check; default: each whose device is there.
      tolerance: ``rtol`` and ``atol``; default: some units in the last place.
      raise_exception: raise where something is wrong; else the result says so.

    Returns:
      What was checked -> ``"SUCCESS"``, ``"SKIPPED: "`` and why, or what is wrong.

    Raises:
      ConformanceError: all that is wrong. NotFoundError, InvalidArgumentError: no such op, input, attribute or kernel.
      UnknownBackendError, PluginError: no such backend, or it can't be used.
    """
    host = default_host() if host is None else host
    opdef = _op_def(op, host)
    first = _by_name(opdef, args)
    second = {n: _moved(v) for n, v in first.items()} if other is None else _by_name(opdef, other)
    data = _data(opdef, first, dict(attrs or {}), tolerance)
    types = _types(opdef, first, data["samples"][0]["attrs"])
    found: dict[str, str] = {}
    made: dict[str, Results] = {}
    varies = False
    for name in backends:
        host.backend(name)
    chosen = _chosen(host, opdef, backends, kernels, found)
    for registered in chosen:
        case = Case(opdef.name, "value", 0, types, data, registered.full_name)
        bench = _bench(host, opdef, registered)
        label = f"{registered.full_name}@{registered.kernel.device}"
        with _noted(found, label), _watched(host, registered):
            given = check_with(bench, case, first, second)
            varies = varies or given is None
            if given is not None:
                made[label] = given
    _compare(found, made, Case(opdef.name, "value", 0, types, data))
    if varies:
        found["gradient"] = "SKIPPED: no input decides what it gives"
    else:
        _gradient(found, host, opdef, first, data, types, chosen)
    wrong = [f"{name}: {text}" for name, text in found.items() if text != SUCCESS and not text.startswith("SKIPPED")]
    if wrong and raise_exception:
        raise ConformanceError(
            f"opcheck of {opdef.name}: {len(wrong)} of {len(found)} checks failed\n  " + "\n  ".join(wrong)
        )
    return found


# -- what is given


def _op_def(op: Any, host: Host) -> OpDef:
    if isinstance(op, str):
        return host.ops.get(op)
    define, kind = getattr(op, "define", None), getattr(op, "type", None)
    if define is None or not isinstance(kind, str):
        raise InvalidArgumentError(
            "opcheck takes an op type or a function that tf.custom_op made", got=repr(op), hint='such as "Softmax"'
        )
    if kind not in host.ops:
        define(host)
    return host.ops.get(kind)


def _by_name(opdef: OpDef, args: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    names = [a.name for a in opdef.inputs]
    if not isinstance(args, Mapping):
        if len(args) > len(names):
            raise InvalidArgumentError(
                f"opcheck of {opdef.name}: too many inputs", expected=", ".join(names), got=str(len(args))
            )
        args = dict(zip(names, args, strict=False))
    for name in args:
        if name not in names:
            raise NotFoundError(f"{opdef.name} has no input {name!r}", hint=did_you_mean(name, names))
    return {
        a.name: _as_input(opdef, a, args.get(a.name)) for a in opdef.inputs if a.name in args or a.arity != "optional"
    }


def _as_input(opdef: OpDef, arg: Any, value: Any) -> Any:
    if value is None:
        if arg.arity == "optional":
            return None
        raise InvalidArgumentError(f"opcheck of {opdef.name}: its input {arg.name!r} is not given")
    if arg.arity == "many":
        return tuple(_as_array(opdef, arg, v) for v in value)
    return _as_array(opdef, arg, value)


def _as_array(opdef: OpDef, arg: Any, value: Any) -> np.ndarray[Any, Any]:
    """An array of a dtype that the argument takes: Python values get the first that holds them."""
    allowed = next((t.allow for t in opdef.types if t.name == arg.dtype), None)
    if isinstance(value, np.ndarray) or arg.dtype == "resource":
        return np.asarray(value)
    if allowed is None and not any(t.name == arg.dtype for t in opdef.types):
        return np.asarray(value, as_dtype(arg.dtype).np)
    made = np.asarray(value)
    for name in (made.dtype.name, *(allowed or ("float32", "int32"))):
        if (not allowed or name in allowed) and np.can_cast(made.dtype, as_dtype(name).np, "same_kind"):
            return made.astype(as_dtype(name).np)
    return made


def _moved(value: Any) -> Any:
    """Other numbers of the same kind, for the step in between."""
    if isinstance(value, tuple):
        return tuple(_moved(v) for v in value)
    if value is None or value.dtype.kind not in "fc" and value.dtype.name != "bfloat16":
        return value
    return (value * value.dtype.type(0.75)).astype(value.dtype)


def _data(
    opdef: OpDef, arrays: Mapping[str, Any], attrs: dict[str, Any], tolerance: Mapping[str, float] | None
) -> dict[str, Any]:
    """What :func:`graphdock_opgen.spec_cases.spec_cases` would say of this op and sample."""
    known = [*(a.name for a in opdef.attrs), *(t.name for t in opdef.types)]
    for name in attrs:
        if name not in known:
            raise NotFoundError(f"{opdef.name} has no attribute {name!r}", hint=did_you_mean(name, known))
    every = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")
    sample = {"inputs": {n: None for n in arrays}, "attrs": attrs, "types": {}, "note": ""}
    dtypes = (*every, "uint16", "uint32", "uint64", "complex64", "complex128", "string")
    kinds = {n: k.partition(":")[0] for n, k in opdef.gradient_kinds.items()}
    tolerances = {} if tolerance is None else dict.fromkeys(dtypes, dict(tolerance))
    return {
        "samples": (sample,),
        "errors": (),
        "types": {t.name: t.allow or dtypes for t in opdef.types},
        "args": {a.name: a.dtype for a in opdef.inputs},
        "tolerances": tolerances,
        "gradcheck": tuple(n for n, v in arrays.items() if kinds.get(n) in ("formula", "op", "fn") and v is not None),
        "gradcheck_options": {},
        "reference": opdef.reference,
    }


def _types(opdef: OpDef, arrays: Mapping[str, Any], attrs: Mapping[str, Any]) -> dict[str, str]:
    types = {t.name: str(as_dtype(attrs[t.name])) for t in opdef.types if t.name in attrs}
    for arg in opdef.inputs:
        value = arrays.get(arg.name)
        for array in value if isinstance(value, tuple) else (value,):
            if array is not None and any(t.name == arg.dtype for t in opdef.types):
                types.setdefault(arg.dtype, as_dtype(array.dtype).name)
    return types


# -- what runs


def _chosen(
    host: Host, opdef: OpDef, backends: Sequence[str], wanted: Sequence[str] | None, found: dict[str, str]
) -> list[RegisteredKernel]:
    """The kernels whose device is there; of the others ``found`` says why not."""
    every = host.kernels.for_op(opdef.name)
    registered = [r for r in every if r.plugin in (*backends, *_NO_BACKEND) or r.package == opdef.package]
    names = [r.full_name for r in registered]
    for name in wanted or ():
        if name not in names:
            raise NotFoundError(f"{opdef.name} has no kernel {name!r}", hint=did_you_mean(name, names))
    chosen = []
    for one in registered:
        if wanted is not None and one.full_name not in wanted:
            continue
        try:
            if one.kernel.device != HOST_MEMORY:
                host.device_infos(one.kernel.device)
        except DeviceUnavailable as error:
            found[f"{one.full_name}@{one.kernel.device}"] = f"SKIPPED: {error.reason}"
            continue
        chosen.append(one)
    if not chosen and opdef.verb.kernel and not found:
        raise KernelNotFoundError(f"no kernel is registered for {opdef.name}")
    return chosen


def _bench(host: Host, opdef: OpDef, registered: RegisteredKernel | None) -> Bench:
    if registered is None:
        order, pins, plugin, device = ["cpu"], {}, "cpu", "cpu"
    else:
        device = "cpu" if registered.kernel.device == HOST_MEMORY else registered.kernel.device
        owner = host.devices.entry(host.device_type(device))
        assert owner is not None
        plugin = registered.plugin
        order = [*([] if plugin in _NO_BACKEND else [plugin]), owner[1]]
        pins = {f"{opdef.name}@{device}": registered.full_name}
    wide = tuple(dict.fromkeys([*order, "cpu"]))
    return Bench(host, plugin, tuple(dict.fromkeys(order)), wide, pins, "reference", device)


@contextlib.contextmanager
def _noted(found: dict[str, str], label: str) -> Any:
    """Note under ``label`` what the block raises."""
    try:
        yield
    except Missing as error:
        found[label] = f"SKIPPED: {error}"
    except ConformanceError as error:
        found[label] = str(error)
    except GraphdockError as error:
        error.site = None  # opcheck made the op: there is no line of anybody's
        found[label] = format_error(error)
    except AssertionError as error:  # races
        found[label] = str(error)
    else:
        found[label] = SUCCESS


@contextlib.contextmanager
def _watched(host: Host, registered: RegisteredKernel) -> Any:
    """Under the race checker, where the kernel's plugin has a device with queues."""
    if registered.plugin in _NO_BACKEND:
        yield
        return
    with Watching(host, registered.plugin).case():
        yield


def _compare(found: dict[str, str], made: Mapping[str, Results], case: Case) -> None:
    """Every kernel agrees with the first one."""
    (first, want), *rest = made.items() or [("", [])]
    for label, got in rest:
        with _noted(found, f"{label} and {first} agree"):
            agree(case, got, want, label)


def _gradient(
    found: dict[str, str],
    host: Host,
    opdef: OpDef,
    arrays: Mapping[str, Any],
    data: Mapping[str, Any],
    types: Mapping[str, str],
    chosen: Sequence[RegisteredKernel],
) -> None:
    """Central differences in float64, which every floating input is turned into."""
    if not data["gradcheck"]:
        found["gradient"] = "SKIPPED: no input has one"
        return
    wide = {n: _widened(v) for n, v in arrays.items()}
    kinds = {**types, **{v: "float64" for v, n in types.items() if as_dtype(n).is_floating}}
    refusing = [t.name for t in opdef.types if kinds.get(t.name) == "float64" and t.allow and "float64" not in t.allow]
    fixed = [
        a.name for a in opdef.inputs if a.name in data["gradcheck"] and a.dtype in ("float16", "bfloat16", "float32")
    ]
    if refusing or fixed:
        found["gradient"] = f"SKIPPED: {', '.join(refusing or fixed)} can't be float64"
        return
    case = Case(opdef.name, "gradient", 0, kinds, data)
    takes = next((r for r in chosen if "float64" in (r.kernel.types.get("T") or ("float64",))), None)
    with _noted(found, "gradient"):
        check_gradient(_bench(host, opdef, takes), case, wide)


def _widened(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_widened(v) for v in value)
    if value is None or not as_dtype(value.dtype).is_floating:
        return value
    return value.astype(np.float64)
