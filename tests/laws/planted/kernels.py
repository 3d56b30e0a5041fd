"""Faults of kernels, on the host, on a synchronous device with memory of its own, and on one with queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, Scratch, ViewRule, dtypes

from planted.bench import Fault, make_host, opdef, refuse, right, suspects

BOTH = frozenset({"conformance", "debug"})
KIT = frozenset({"conformance"})
_FLOAT = dtypes.ALL["float32"]


def wrong_value(x, *out):
    return np.multiply(x, x.dtype.type(2.001), *out)


def wrong_for_float64(x, *out):
    return np.multiply(x, x.dtype.type(2.001 if x.dtype == np.float64 else 2), *out)


def wrong_for_rank_1(x, *out):
    return np.add(x, x if x.ndim > 1 else x + 1, *out)


def writes_its_input(x, *out):
    result = right(x, *out)
    x += 1
    return result


def ignores_out(x, *out):
    return x + x


def leaves_the_end(x, *out):
    if not out:
        return x + x
    out[0].reshape(-1)[:-1] = (x + x).reshape(-1)[:-1]
    return None


def _noisy():
    rng = np.random.default_rng()

    def draws(x, *out):
        noise = 1 + rng.integers(0, 8, x.shape) * np.finfo(x.dtype).eps
        return np.multiply(x + x, noise.astype(x.dtype), *out)

    return draws


def _stale():
    first = {}

    def keeps(x, *out):
        kept = first.setdefault((x.shape, x.dtype), x + x)
        if not out:
            return kept.copy()
        return np.copyto(out[0], kept)

    return keeps


def adds_to_out(x, *out):
    if not out:
        return x + x
    out[0][...] += x + x
    return None


def skips_the_last(x, *out):
    if not out:
        return x + x
    flat, into = x.ravel(), out[0].reshape(-1)
    return np.add(flat[:-1], flat[:-1], into[:-1])


def writes_behind(x, *out):
    result = right(x, *out)
    if out:
        np.lib.stride_tricks.as_strided(out[0], (out[0].size + 1,), (out[0].itemsize,))[-1] = 0
    return result


def writes_before(x, *out):
    result = right(x, *out)
    if out:
        base = out[0]
        while isinstance(base.base, np.ndarray):
            base = base.base
        start = out[0].ctypes.data - base.ctypes.data - out[0].itemsize
        np.ndarray((1,), out[0].dtype, base, start)[...] = 0
    return result


def fresh_wrong_value(x, *out):
    return right(x, *out) if out else x.copy()


def fresh_wrong_dtype(x, *out):
    return right(x, *out) if out else (x + x).astype(np.float16)


def fresh_wrong_shape(x, *out):
    return right(x, *out) if out else np.concatenate([x + x, x])


def fresh_none(x, *out):
    return right(x, *out) if out else None


def fresh_list(x, *out):
    return right(x, *out) if out else [x + x]


def fresh_is_its_input(x):
    x += x
    return x


def raises_for_unknown_dims(x, out):
    np.add(x, x, out)


def scratch_is_zero(x, *rest):
    *out, scratch = rest
    scratch += 2
    return np.multiply(x, x.dtype.type(scratch[0]), *out)


def writes_behind_scratch(x, *rest):
    *out, scratch = rest
    np.lib.stride_tricks.as_strided(scratch, (scratch.size + 1,), (4,))[-1] = 0
    return right(x, *out)


#: name -> body (or what makes one), fields of its KernelDef, who finds it
BODIES: dict[str, tuple[Any, dict[str, Any], frozenset[str]]] = {
    "a wrong value": (wrong_value, {}, KIT),
    "a wrong value for one dtype": (wrong_for_float64, {}, KIT),
    "a wrong value for one rank": (wrong_for_rank_1, {}, KIT),
    "it writes its input": (writes_its_input, {}, BOTH),
    "it leaves its output as it was": (ignores_out, {}, BOTH),
    "it leaves its last element as it was": (leaves_the_end, {}, BOTH),
    "it draws": (_noisy, {}, KIT),
    "it keeps its first result": (_stale, {}, KIT),
    "it takes its output for zero": (adds_to_out, {}, BOTH),
    "it leaves one element out": (skips_the_last, {}, BOTH),
    "it writes behind its output": (writes_behind, {}, BOTH),
    "it writes before its output": (writes_before, {}, BOTH),
    "a wrong value where shapes are unknown": (fresh_wrong_value, {}, KIT),
    "a wrong dtype where shapes are unknown": (fresh_wrong_dtype, {}, BOTH),
    "a wrong shape where shapes are unknown": (fresh_wrong_shape, {}, KIT),
    "None where shapes are unknown": (fresh_none, {}, BOTH),
    "a list where shapes are unknown": (fresh_list, {}, BOTH),
    "it returns its input": (fresh_is_its_input, {"modes": ("fresh",)}, BOTH),
    "it can't do unknown shapes": (raises_for_unknown_dims, {}, BOTH),
    "it takes its scratch buffer for zero": (scratch_is_zero, {"scratch": (Scratch(_FLOAT, (3,)),)}, BOTH),
    "it writes behind its scratch buffer": (
        writes_behind_scratch,
        {"scratch": (Scratch(_FLOAT, (3,)),)},
        BOTH,
    ),
}
_MADE = {_noisy, _stale}


def _refusing(body: Callable[..., Any]) -> Callable[..., Any]:
    """``body``, which raises what the op's spec says, so that nothing but its fault is found."""

    def refusing(x, *rest):
        refuse(x)
        return body(x, *rest)

    return refusing


def _planted(place: str, body: Any, fields: dict[str, Any]) -> Callable[[], Any]:
    def make():
        made = _refusing(body() if body in _MADE else body)
        kernel = suspects.kernel(place, made, **fields)
        return make_host(kernel, factory=suspects.ChipFactory() if place == "chip" else None)

    return make


# -- faults that only a queue has


def _queue_kernel(make: Callable[[BuildContext], Callable[..., Any]], **fields: Any) -> Callable[[], Any]:
    return lambda: make_host(KernelDef("fault.Op", "queued", lambda ctx: Bound(make(ctx), **fields)))


def _launch(ctx: BuildContext, queue: Any, x: Any, out: tuple[Any, ...], work: Any = None, **told: Any) -> Any:
    """A right launch, but for what is told otherwise."""
    made = out[0] if out else ctx.queue.empty(ctx.outputs[0].dtype, x.shape)
    source, target = x.array, made.array
    reads, writes = told.get("reads", [x]), told.get("writes", [made])
    queue.launch("planted", work or (lambda: right(source, target)), reads, writes)
    return None if out else made


def _copied(source: Any, target: Any) -> None:
    refuse(source)
    np.copyto(target, source)


def on_the_private_queue(ctx):
    return lambda x, *out: _launch(ctx, ctx.device.queue, x, out)


def _other_queue(wait_before: bool, wait_after: bool):
    def build(ctx):
        other = ctx.device.new_queue()

        def compute(x, *out):
            if not out:
                return _launch(ctx, ctx.queue, x, out)
            if wait_before:
                other.wait(ctx.queue.record())
            previous = ctx.device.activate(other)
            try:
                _launch(ctx, other, x, out)
            finally:
                ctx.device.restore(previous)
            if wait_after:
                ctx.queue.wait(other.record())
            return None

        return compute

    return build


def reads_at_launch(ctx):
    """The host computes when it launches, over what the queue has not made yet."""

    def compute(x, *out):
        refuse(x.array)
        made = np.array(x.array) * 2
        target = out[0] if out else ctx.queue.empty(ctx.outputs[0].dtype, x.shape)
        array = target.array
        ctx.queue.launch("planted", lambda: np.copyto(array, made), [x], [target])
        return None if out else target

    return compute


def temporary_is_gone(ctx):
    """A buffer that belongs to no queue is dropped while work on it is queued."""

    def compute(x, *out):
        temporary = ctx.device.empty(ctx.inputs[0].dtype, x.shape)
        source, between = x.array, temporary.array
        ctx.queue.launch("first half", lambda: _copied(source, between), [x], [temporary])
        target = out[0] if out else ctx.queue.empty(ctx.outputs[0].dtype, x.shape)
        array = target.array
        ctx.queue.launch("second half", lambda: np.add(between, between, array), [temporary], [target])
        return None if out else target

    return compute


def allocates_and_says_it_can_be_recorded(ctx):
    def compute(x, *out):
        temporary = ctx.queue.empty(ctx.inputs[0].dtype, x.shape)
        source, between = x.array, temporary.array
        ctx.queue.launch("first half", lambda: _copied(source, between), [x], [temporary])
        target = out[0] if out else ctx.queue.empty(ctx.outputs[0].dtype, x.shape)
        array = target.array
        ctx.queue.launch("second half", lambda: np.add(between, between, array), [temporary], [target])
        return None if out else target

    return compute


def waits_and_says_it_can_be_recorded(ctx):
    def compute(x, *out):
        ctx.queue.synchronize()
        return _launch(ctx, ctx.queue, x, out)

    return compute


def counts_its_launches(ctx):
    """What the host counts is frozen where the launch is recorded."""
    calls = [0]

    def compute(x, *out):
        calls[0] += 1
        extra, source = calls[0] == 2, x.array
        target = out[0] if out else ctx.queue.empty(ctx.outputs[0].dtype, x.shape)
        array = target.array
        work = lambda: (refuse(source), np.add(source, source + extra, array))  # noqa: E731
        ctx.queue.launch("planted", work, [x], [target])
        return None if out else target

    return compute


def fails_on_the_host(ctx):
    """It takes a buffer for an array."""
    return lambda x, *out: np.add(x, x, *[o.array for o in out])


QUEUE_FAULTS: dict[str, tuple[Any, frozenset[str]]] = {
    "it works on the private queue": (on_the_private_queue, BOTH),
    "another queue, and nobody waits": (_other_queue(False, False), BOTH),
    "another queue that does not wait for the step's": (_other_queue(False, True), KIT),
    "another queue that the step's does not wait for": (_other_queue(True, False), BOTH),
    "it reads at the launch": (reads_at_launch, KIT),
    "a temporary that is gone": (temporary_is_gone, KIT),
    "it allocates where it is recorded": (allocates_and_says_it_can_be_recorded, KIT),
    "it waits where it is recorded": (waits_and_says_it_can_be_recorded, KIT),
    "it counts its launches": (counts_its_launches, KIT),
    "it takes a buffer for an array": (fails_on_the_host, BOTH),
}


# -- declarations that are wrong


def _in_place():
    def clears_first(x, *out):
        refuse(x)
        if not out:
            return x + x
        out[0].fill(0)
        return np.add(x, x, out[0])

    return suspects.kernel("cpu", clears_first, inplace={"y": ("x",)}, modes=("planned", "fresh", "inplace"))


def _view():
    def other_elements(x, *out):
        refuse(x)
        return np.add(x, x, *out) if out else x

    rule = {"views": {"y": ViewRule("x", contiguous=True)}, "modes": ("planned", "fresh", "view")}
    return suspects.kernel("cpu", other_elements, **rule)


def _strided():
    def reads_memory_order(x, *out):
        base = x if x.base is None else x.base
        flat = x if x.flags.c_contiguous else np.ndarray(x.shape, x.dtype, base)
        return right(flat, *out)

    return suspects.kernel("cpu", reads_memory_order, layout="strided")


def _labelled():
    return suspects.kernel("cpu", _refusing(wrong_value), name="fast", label="fast")


def _tie():
    return suspects.kernel("cpu", right, name="second")


DECLARATIONS = {
    "it can't work in place": (lambda: make_host(_in_place()), KIT),
    "a view of other elements": (lambda: make_host(_view()), KIT),
    "it misreads strides": (lambda: make_host(_strided()), KIT),
    "a kernel with a label gives a wrong value": (
        lambda: make_host(suspects.kernel("cpu", right), _labelled()),
        KIT,
    ),
    "two kernels tie": (lambda: make_host(suspects.kernel("cpu", right), _tie()), BOTH),
    "it gives another error": (
        lambda: make_host(suspects.kernel("cpu", lambda x, *out: np.add(x, x, *out))),
        KIT,
    ),
}

SPECS = {
    "a wrong gradient": ({"gradient": "wrong_gradient"}, KIT),
    "a wrong decomposition": ({"decomposition": "wrong_decomposition"}, KIT),
    "a shape rule with another dim": ({"shape_fn": "wrong_shape"}, BOTH),
    "a shape rule with another rank": ({"shape_fn": "less_rank"}, BOTH),
    "an error that is not raised": ({"shape_fn": "no_check"}, KIT),
}


def faults() -> list[Fault]:
    found = [
        Fault(name, "kernel", place, who, _planted(place, body, fields))
        for place in suspects.PLACES
        for name, (body, fields, who) in BODIES.items()
    ]
    found += [Fault(name, "kernel", "queued", who, _queue_kernel(make)) for name, (make, who) in QUEUE_FAULTS.items()]
    found += [Fault(name, "kernel", "cpu", who, make) for name, (make, who) in DECLARATIONS.items()]
    for name, (facts, who) in SPECS.items():

        def make(facts=facts):
            return make_host(suspects.kernel("cpu", right), op=opdef(**facts))

        found.append(Fault(name, "spec", "-", who, make))
    return found
