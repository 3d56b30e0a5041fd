"""Faults of patterns, whose replacement is not what it replaces, and of region compilers, which compute something else."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import graphdock as tf
import numpy as np
from graphdock.contracts import CONSTANT, Claim, KernelDef, Operand, Pattern, hookimpl
from graphdock.plugin.host import Host
from graphdock_testing.region_reference import ArrangingCompiler, ReferenceCompiler, evaluate

from planted.bench import Fault

KIT = frozenset({"conformance"})
INPUTS = {"a": Operand((None, None)), "b": Operand((None, None)), "bias": Operand((None,)), "scale": CONSTANT}


def by_hand(a: Any, b: Any, bias: Any, scale: Any) -> Any:
    return tf.nn.relu(tf.matmul(a, b) * scale + bias)


def right(a: Any, b: Any, bias: Any, scale: Any) -> Any:
    return tf.nn.relu(tf.matmul(a, b) * tf.constant(scale) + bias)


def _pattern(replacement: Callable[..., Any], **fields: Any) -> Pattern:
    told = {"anchor": "Relu", "inputs": INPUTS, "pattern": by_hand, "dtypes": ("float32",), **fields}
    return Pattern("planted", replacement=replacement, **told)


def _both(a: Any, b: Any, bias: Any, scale: Any) -> Any:
    made = by_hand(a, b, bias, scale)
    return made, tf.tanh(made)


def _raises(*_: Any, **__: Any) -> Any:
    raise KeyError("epsilon")


PATTERNS: dict[str, Pattern] = {
    "it forgets the bias": _pattern(lambda a, b, bias, scale: tf.nn.relu(tf.matmul(a, b) * tf.constant(scale))),
    "it forgets the scale": _pattern(lambda a, b, bias, scale: tf.nn.relu(tf.matmul(a, b) + bias)),
    "it takes another number": _pattern(lambda a, b, bias, scale: right(a, b, bias, scale * 0 + np.float32(0.7))),
    "it forgets the activation": _pattern(lambda a, b, bias, scale: tf.matmul(a, b) * tf.constant(scale) + bias),
    "another activation": _pattern(
        lambda a, b, bias, scale: tf.nn.relu6(tf.matmul(a, b) * tf.constant(scale) * 40.0 + bias * 40.0) / 40.0
    ),
    "the bias before the scale": _pattern(
        lambda a, b, bias, scale: tf.nn.relu((tf.matmul(a, b) + bias) * tf.constant(scale))
    ),
    "its gradient stops": _pattern(lambda a, b, bias, scale: right(a, tf.stop_gradient(b), bias, scale)),
    "its gradient by the bias is twice as large": _pattern(
        lambda a, b, bias, scale: right(a, b, bias + bias - tf.stop_gradient(bias), scale)
    ),
    "another dtype": _pattern(lambda a, b, bias, scale: tf.cast(right(a, b, bias, scale), tf.float64)),
    "another shape": _pattern(lambda a, b, bias, scale: tf.expand_dims(right(a, b, bias, scale), 0)),
    "a result too few": _pattern(right, pattern=_both),
    "it raises": _pattern(_raises),
    "its check raises": _pattern(right, check=_raises),
    "no place fits it": _pattern(right, check=lambda found: "not here"),
}


class _Spoiled(ReferenceCompiler):
    """The reference compiler, whose results ``spoil`` changes."""

    spoil: Callable[..., Any]

    def written(self, variable: Any) -> Any:
        """The memory that an update of a variable goes to."""
        return variable

    def build(self, region: Any, ctx: Any) -> Any:
        from graphdock.contracts import Bound

        program, count = region.program, len(region.graph.inputs)
        drawn, spoil, memory = count + len(region.streams), type(self).spoil, {}

        def compute(*given: Any) -> None:
            outs = iter(given[drawn:])
            with np.errstate(all="ignore"):
                results = evaluate(program, given[:count], given[count:drawn])
                for i, (out, value) in enumerate(zip(program.outputs, results, strict=True)):
                    target = next(outs) if out.into is None else self.written(given[out.into])
                    target[...] = spoil(value, given[:count], memory.setdefault(i, {}))

        return Bound(compute)


def _spoiled(function: Callable[..., Any]) -> type[ReferenceCompiler]:
    return type("Spoiled", (_Spoiled,), {"spoil": staticmethod(function)})


def _last_out(value: Any, given: Any, memory: Any) -> Any:
    made = np.array(value)
    if made.ndim == 2 and made.shape[1] > 1000:
        made[:, 1024:] = 0
    return made


def _whole_row(value: Any, given: Any, memory: Any) -> Any:
    made = np.array(value)
    return np.broadcast_to(made[:1], made.shape) if made.ndim == 2 else made


class _ClaimRaises(ReferenceCompiler):
    def claim(self, candidate: Any) -> Any:
        raise ZeroDivisionError("no cost")


class _ClaimsNothing(ReferenceCompiler):
    def claim(self, candidate: Any) -> Any:
        from graphdock.contracts import Refusal

        return Refusal("not today")


class _ClaimsOne(ReferenceCompiler):
    def claim(self, candidate: Any) -> Any:
        return Claim(tuple(n for n in candidate.graph.nodes if n.verb != "constant")[:1], 0.1)


class _AnswersYes(ReferenceCompiler):
    def claim(self, candidate: Any) -> Any:
        return True


class _BuildRaises(ReferenceCompiler):
    def build(self, region: Any, ctx: Any) -> Any:
        raise RuntimeError("no such instruction")


class _WritesACopy(_Spoiled):
    spoil = staticmethod(lambda value, given, memory: value)

    def written(self, variable: Any) -> Any:
        return variable.copy()


class _SpoiledProducts(ReferenceCompiler):
    """Twice what products of matrices are."""

    def build(self, region: Any, ctx: Any) -> Any:
        kind = (
            _spoiled(lambda v, g, m: v * 2) if any(n.op == "MatMul" for n in region.graph.nodes) else ReferenceCompiler
        )
        return kind().build(region, ctx)


def _refusing(holds: Callable[[Any], bool]) -> type[ReferenceCompiler]:
    """A compiler that takes no candidate with an op that ``holds``, though it asks for them."""
    from graphdock.contracts import Refusal

    def claim(self: Any, candidate: Any) -> Any:
        if any(n.opdef.region is not None and holds(n.opdef.region) for n in candidate.graph.nodes):
            return Refusal("not these")
        return ReferenceCompiler.claim(self, candidate)

    return type("Refusing", (ReferenceCompiler,), {"claim": claim})


class _NoOffsets(ReferenceCompiler):
    """It reads each part from the beginning of its tensor."""

    def build(self, region: Any, ctx: Any) -> Any:
        if region.program is not None:
            inputs = tuple(replace(i, offset=0) for i in region.program.inputs)
            region.program = replace(region.program, inputs=inputs)
        return super().build(region, ctx)


class _NoSpans(ReferenceCompiler):
    """It takes each dim of a part for the whole dim of its tensor."""

    def build(self, region: Any, ctx: Any) -> Any:
        if region.program is not None:
            inputs = [
                replace(i, spans=tuple(s and replace(s, begin=0, end=None, step=1) for s in i.spans))
                for i in region.program.inputs
            ]
            region.program = replace(region.program, inputs=tuple(inputs))
        return super().build(region, ctx)


class _OneTurnMore(ReferenceCompiler):
    """Its loops do something once more when they have ended."""

    def _build_loop(self, loop: Any) -> Any:
        made, count = super()._build_loop(loop), len(loop.given)

        def compute(*given: Any) -> None:
            made.compute(*given)
            for out in given[count:]:
                out[...] = np.tanh(out) if out.dtype.kind == "f" else out

        from graphdock.contracts import Bound

        return Bound(compute)


class _FirstExtents(ReferenceCompiler):
    """It keeps the extents of the first step for all others."""

    def build(self, region: Any, ctx: Any) -> Any:
        made, first = super().build(region, ctx), []

        def compute(*given: Any) -> Any:
            if region.program is None or all(a.extent is not None for a in region.program.axes):
                return made.compute(*given)
            first.append([a.shape for a in given])
            return made.compute(*[a[: shape[0]] if a.ndim else a for a, shape in zip(given, first[0], strict=True)])

        from graphdock.contracts import Bound

        return Bound(compute)


class _NotTurned(ArrangingCompiler):
    """It is told that a matrix comes turned, and reads it as it was."""

    def build(self, region: Any, ctx: Any) -> Any:
        made, turned = ReferenceCompiler.build(self, region, ctx), sorted(region.arranged)

        from graphdock.contracts import Bound

        return Bound(
            lambda *given: made.compute(*[a.reshape(a.shape[::-1]) if i in turned else a for i, a in enumerate(given)])
        )


def _arranging(**fields: Any) -> type[ArrangingCompiler]:
    """A compiler whose arrangements have other fields."""

    def arranged(self: Any, region: Any) -> Any:
        return {i: replace(a, **fields) for i, a in ArrangingCompiler.arranged(self, region).items()}

    return type("Arranging", (ArrangingCompiler,), {"arranged": arranged})


COMPILERS: dict[str, tuple[type[ReferenceCompiler], frozenset[str]]] = {
    "a result that is off": (_spoiled(lambda v, g, m: v * v.dtype.type(1.01) if v.dtype.kind == "f" else v), KIT),
    "integers that are off": (_spoiled(lambda v, g, m: v + 1 if v.dtype.kind in "iu" else v), KIT),
    "NaN becomes 0": (_spoiled(lambda v, g, m: np.nan_to_num(v, nan=0.0, posinf=np.inf, neginf=-np.inf)), KIT),
    "infinity becomes the largest number": (_spoiled(lambda v, g, m: np.nan_to_num(v, nan=np.nan)), KIT),
    "elements beyond a block are left out": (_spoiled(_last_out), KIT),
    "all rows are the first": (_spoiled(_whole_row), KIT),
    "it keeps what it computed": (_spoiled(lambda v, g, m: m.setdefault("first", np.zeros_like(v))), KIT),
    "the last element is left out": (
        _spoiled(lambda v, g, m: np.concatenate([v.reshape(-1)[:-1], v.reshape(-1)[:1] * 0]).reshape(v.shape)),
        KIT,
    ),
    "its claim raises": (_ClaimRaises, KIT),
    "it claims one node": (_ClaimsOne, KIT),
    "it answers with something else": (_AnswersYes, KIT),
    "its build raises": (_BuildRaises, KIT),
    "it claims nothing": (_ClaimsNothing, KIT),
    "it writes an update into a copy": (_WritesACopy, KIT),
    "its products are twice as large": (_SpoiledProducts, KIT),
    "it claims no product, though it asks for them": (_refusing(lambda form: bool(form.space)), KIT),
    "it claims no update, though it asks for them": (_refusing(lambda form: bool(form.writes)), KIT),
    "it reads parts from the beginning of their tensors": (_NoOffsets, KIT),
    "it takes slices of dims that it does not know for all of them": (_NoSpans, KIT),
    "its loops do more than they should": (_OneTurnMore, KIT),
    "it keeps the extents of the first step": (_FirstExtents, KIT),
    "it reads an arranged matrix as it was": (_NotTurned, KIT),
    "it arranges constants in another order than variables": (_arranging(of=lambda a: a.T[::-1].copy()), KIT),
    "it arranges constants in another shape": (_arranging(of=lambda a: a.T.reshape(-1).copy()), KIT),
    "it arranges variables in another order than constants": (
        _arranging(
            kernel=KernelDef("Arranged", "cpu", name="off", build=lambda ctx: lambda x, y: np.copyto(y, x.T[::-1]))
        ),
        KIT,
    ),
}


def part_host(**hooks: Any) -> Host:
    """A host with the plugin ``fault``, which has a pattern or a compiler and nothing else."""
    host = Host()
    made = {name: hookimpl(specname=name)(lambda item=item: [item]) for name, item in hooks.items()}
    host.register("fault", types.SimpleNamespace(__name__="fault", **made))
    return host


def faults() -> list[Fault]:
    found = [
        Fault(name, "pattern", "-", KIT, lambda p=pattern: part_host(register_patterns=p))
        for name, pattern in PATTERNS.items()
    ]
    for name, (kind, who) in COMPILERS.items():
        found.append(Fault(name, "compiler", "-", who, lambda k=kind: part_host(register_region_compilers=k())))
    return found
