"""Conformance of a backend with the op specs: every op, dtype and sample, in every mode a plan may run a kernel in.

The cases come from the op libraries' generated data, so that the author of a backend writes none:

    kit = Conformance("mychip")
    for case in kit.cases():
        kit.check(case)          # raises Missing, or ConformanceError with what is wrong

``pytest --graphdock-backend mychip`` does the same with a compliance table (:mod:`graphdock.testing.pytest_plugin`).

What a ``value`` case checks: the result against the spec's oracle (on cpu) or the cpu's result (elsewhere), twice with
other numbers in between (a kernel that keeps something fails) and bit by bit against itself; with shapes known, dims
unknown and rank unknown; over strided inputs; over inputs whose buffers the plan owns (a view that is made only once, an
output that takes over its input); that no fed array was written and none is aliased by a result; that the
inferred shape agrees; and that the op's decomposition computes the same. ``error`` cases must raise the message of the spec.
``gradient`` cases compare ``gradients`` with central differences in float64. On a device with queues that has ``extent`` each
case runs under the race checker (:mod:`graphdock.testing.driver.races`).
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphdock.contracts.opdef import OpDef
from graphdock.dtypes import DType, as_dtype
from graphdock.errors import GraphdockError, InternalError, KernelNotFoundError, NotFoundError, did_you_mean
from graphdock.graph.graph import Graph
from graphdock.opdef.resolve import resolve
from graphdock.passes.pipeline import PASSES
from graphdock.plugin.host import Host, default_host
from graphdock.session.config import SessionConfig
from graphdock.session.run_options import RunMetadata
from graphdock.session.session import Session
from graphdock.shape import compatible, show
from graphdock.testing.driver.races import RaceError
from graphdock.testing.numeric import central_differences, difference, same_bits
from graphdock.testing.programs import Program, build
from graphdock.testing.samples import bindings, make_arrays
from graphdock.testing.watching import Watching

__all__ = ["Case", "Conformance", "ConformanceError", "Missing"]

#: Ops whose results are numbers drawn at random.
_RANDOM = "random"


class ConformanceError(AssertionError):
    """A kernel, gradient or spec broke a promise; the message says which, with the case's op, dtypes and sample."""


class Missing(Exception):
    """The backend has no kernel for the case; not a failure."""


class _Jump(Exception):
    """The result changes its shape at this very point (Range at a whole number): it has no derivative there."""


@dataclass(frozen=True)
class Case:
    """One thing to check.

    Attributes:
      kind: ``value``, ``error`` or ``gradient``.
      index: of the sample (or error sample) in the spec.
      types: type variable -> dtype name.
    """

    op: str
    kind: str
    index: int
    types: Mapping[str, str] = field(hash=False)
    data: Mapping[str, Any] = field(hash=False, repr=False)

    @property
    def sample(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.data["errors" if self.kind == "error" else "samples"][self.index]
        return found

    @property
    def dtype(self) -> str:
        """The dtype of the op's first type variable; ``-`` for an op without one."""
        return next(iter(self.types.values()), "-")

    @property
    def id(self) -> str:
        """``MatMul[float32-0]``; further type variables are named."""
        first, *rest = self.types.items() or [("", "-")]
        more = "".join(f",{var}={name}" for var, name in rest)
        kind = "" if self.kind == "value" else f"{self.kind}-"
        return f"{self.op}[{kind}{first[1]}{more}-{self.index}]"


class Conformance:
    """The kit for one backend.

    Args:
      backend: name of an installed (or registered) plugin that has kernels.
      pins: kernels to use instead of the backend's own, as in ``SessionConfig.kernels``; for tests of the kit itself.
      host: where the ops and the backend's kernels and devices are; default: the process's own.
      oracle: ``"reference"`` for the specs' oracles, or the backend to agree with; default: the oracles for cpu, else cpu.

    Raises:
      UnknownBackendError, PluginError: there is no such backend, or it can't be used.
    """

    def __init__(
        self,
        backend: str = "cpu",
        *,
        pins: Mapping[str, str] | None = None,
        host: Host | None = None,
        oracle: str | None = None,
    ) -> None:
        self.backend = backend
        self.host = default_host() if host is None else host
        self._pins = dict(pins or {})
        self.watching = Watching(self.host, backend)
        self._oracle = oracle or ("reference" if backend == "cpu" else "cpu")
        loaded = self.host.backend(backend)
        if self._oracle != "reference":
            self.host.backend(self._oracle)
        order = [backend]
        for kind in loaded.device_types or loaded.kernel_devices:
            owner = self.host.devices.get(kind)
            if owner is None and self.host.device_infos(kind):
                owner = self.host.devices.get(kind)
            if owner is not None:
                order.append(owner[1])
        self._order = tuple(dict.fromkeys(order))
        #: with cpu behind it, for the ops around the one that is checked
        self._wide_order = tuple(dict.fromkeys([*order, "cpu"]))
        self._all: dict[str, Mapping[str, Any]] = {}
        for module in self.host.ops.case_modules():
            self._all.update(importlib.import_module(module).CASES)
        state = next((s for s in self.host.plugins() if s.name == backend), None)
        manifest = state.manifest if state is not None else None
        self._xfails = manifest.xfails if manifest is not None else ()

    # -- what there is

    @property
    def ops(self) -> list[str]:
        """Every op with samples, sorted."""
        return sorted(op for op, data in self._all.items() if data["samples"] or data["errors"])

    def has_kernel(self, op: str) -> bool:
        """Whether the backend brings a kernel for the op, whatever the dtypes; true for what the host runs itself."""
        if not self.host.ops.get(op).verb.kernel or any(pin.partition("@")[0] == op for pin in self._pins):
            return True
        return any(r.plugin == self.backend for r in self.host.kernels.for_op(op))

    def cases(self, op: str | None = None) -> Iterator[Case]:
        """Every case of every op, or of one.

        Raises:
          NotFoundError: no op library has samples of ``op``.
        """
        if op is not None and op not in self._all:
            raise NotFoundError(f"no op library has conformance cases of {op!r}", hint=did_you_mean(op, self._all))
        for name in [op] if op is not None else self.ops:
            data = self._all[name]
            opdef = self.host.ops.get(name)
            for index, sample in enumerate(data["samples"]):
                for types in bindings(opdef, data, sample):
                    yield Case(name, "value", index, types, data)
            for index, sample in enumerate(data["errors"]):
                for types in bindings(opdef, data, sample):
                    yield Case(name, "error", index, types, data)
                    break
            if data["gradcheck"]:
                for index, sample in enumerate(data["samples"]):
                    found = _in_float64(opdef, data, sample)
                    if found is not None:
                        yield Case(name, "gradient", index, found, data)

    def xfail(self, case: Case) -> str | None:
        """Why the backend's manifest expects the case to fail, or None."""
        for entry in self._xfails:
            if entry.op == case.op and entry.dtype in (None, case.dtype):
                return entry.reason
        return None

    def gradient_kinds(self) -> Counter[str]:
        """How many inputs of all ops have their gradient as a ``formula``, ``op``, ``fn``, ``none`` or ``todo``."""
        counts: Counter[str] = Counter({k: 0 for k in ("formula", "op", "fn", "none", "todo")})
        for name in self._all:
            for kind in self.host.ops.get(name).gradient_kinds.values():
                counts[kind.partition(":")[0]] += 1
        return counts

    # -- checking

    def check(self, case: Case) -> None:
        """Run one case.

        Raises:
          Missing: the backend has no kernel for it. ConformanceError: what is wrong.
        """
        if not self.has_kernel(case.op):
            raise Missing(f"{self.backend} has no kernel for {case.op}")
        try:
            with self.watching.case():
                getattr(self, f"_check_{case.kind}")(case)
        except RaceError as error:
            raise ConformanceError(f"{case.id}: {error}") from error
        except KernelNotFoundError as error:
            raise Missing(f"{self.backend} has no kernel for {case.id}: {error.message}") from error
        except ConformanceError as error:
            raise ConformanceError(f"{case.id}: {error}") from error
        except GraphdockError as error:
            error.site = None  # the kit made the op: there is no line of anybody's
            raise ConformanceError(f"{case.id}: {type(error).__name__}: {error}") from error

    def _session(self, graph: Graph, policy: str, order: Sequence[str], fallback: str = "forbid") -> Session:
        config = SessionConfig(
            backends=tuple(order),
            fallback=fallback,
            kernels=self._pins,
            passes=dict.fromkeys(PASSES, False),
            shape_policy=policy,
            debug=True,
        )
        return Session(graph=graph, config=config, host=self.host)

    def _expected(self, case: Case, opdef: OpDef, program: Program, arrays: Mapping[str, Any], ordinal: int) -> Any:
        """The right results, flattened; None where nothing says what they are."""
        cpu = any(r.plugin == "cpu" for r in self.host.kernels.for_op(case.op))
        if self._oracle != "reference" and (cpu or not opdef.verb.kernel):
            config = SessionConfig(backends=(self._oracle,), passes=dict.fromkeys(PASSES, False))
            session = Session(graph=program.op.graph, config=config)
            for _ in range(ordinal + 1):
                results = _run(session, program, arrays)
            return results
        if case.data["reference"] is None:
            return None
        attrs = program.op.node_attrs
        oracle = resolve(case.data["reference"])
        known = {n: v.np if isinstance(v, DType) else v for n, v in attrs.items()}
        if _RANDOM in opdef.effects:
            seeds = int(attrs.get("seed", 0)), int(attrs.get("seed2", 0))
            if seeds == (0, 0):
                return None
            known.update(key=seeds, counter=(ordinal, 0))
        parameters = inspect.signature(oracle).parameters
        if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            known = {n: v for n, v in known.items() if n in parameters}
        copies = {n: _copied(v) for n, v in arrays.items()}
        with np.errstate(all="ignore"):
            made = oracle(**copies, **{n: v for n, v in known.items() if n not in copies})
        return [np.asarray(m) for m in made] if isinstance(made, (list, tuple)) else [np.asarray(made)]

    def _check_value(self, case: Case) -> None:
        opdef = self.host.ops.get(case.op)
        attrs = _attrs(case)
        first = make_arrays(case.data, case.sample, case.types, f"{case.op} {case.index} {case.dtype} a")
        second = make_arrays(case.data, case.sample, case.types, f"{case.op} {case.index} {case.dtype} b")
        graph = Graph(self.host)
        program = build(graph, opdef, first, attrs)
        session = self._session(graph, "exact", self._order)
        self._need_own_kernel(session, program, first, case)
        results = []
        for ordinal, arrays in enumerate((first, second, first)):
            got = self._step(case, session, program, arrays, "planned")
            want = self._expected(case, opdef, program, arrays, ordinal) if ordinal < 2 else None
            self._agree(case, got, want, f"planned, step {ordinal + 1}")
            results.append(got)
        expected = self._expected(case, opdef, program, first, 0)
        if _RANDOM in opdef.effects:
            if (program.op.node_attrs.get("seed", 0), program.op.node_attrs.get("seed2", 0)) != (0, 0):
                again = self._step(case, self._session(graph, "exact", self._order), program, first, "again")
                self._equal_bits(results[0], again, "a new session with the same seeds draws other numbers")
        elif not opdef.is_stateful or program.variables:
            self._equal_bits(results[0], results[2], "the same inputs give other bits the second time")
        for how in ("fresh", "unranked", "strided", "computed"):
            if how == "strided" and not self._can_stride(first, opdef):
                continue
            other = build(graph, opdef, first, attrs, how)
            around = how in ("strided", "computed")
            session = self._session(graph, "exact" if around else "generic", self._order)
            for ordinal, arrays in enumerate((first, second) if how == "computed" else (first,)):
                try:
                    got = self._step(case, session, other, arrays, how)
                except KernelNotFoundError:
                    if not around:
                        raise
                    break  # the backend lacks the op that makes the input
                want = expected if ordinal == 0 else self._expected(case, opdef, other, arrays, ordinal)
                if want is None:
                    _same_facts(got, results[0], how)
                self._agree(case, got, want, how)
        if opdef.decomposition is not None and not program.variables:
            self._decomposition(case, opdef, graph, first, attrs, expected)

    def _decomposition(
        self, case: Case, opdef: OpDef, graph: Graph, arrays: Mapping[str, Any], attrs: Mapping[str, Any], expected: Any
    ) -> None:
        assert opdef.decomposition is not None
        make = resolve(opdef.decomposition)
        types = {n: as_dtype(v) for n, v in case.types.items() if n not in attrs}
        defaults = {a.name: a.default for a in opdef.attrs}
        program = build(graph, opdef, arrays, {**defaults, **types, **attrs}, "planned", make)
        session = self._session(graph, "exact", self._wide_order, "allow")
        got = self._step(case, session, program, arrays, "decomposition")
        self._agree(case, got, expected, "decomposition")

    def _check_error(self, case: Case) -> None:
        opdef = self.host.ops.get(case.op)
        arrays = make_arrays(case.data, case.sample, case.types, f"{case.op} {case.index} error")
        match = case.sample["match"]
        for how in ("planned", "fresh"):
            graph = Graph(self.host)
            try:
                program = build(graph, opdef, arrays, _attrs(case), how)
                _run(self._session(graph, "exact", self._order), program, arrays)
            except KernelNotFoundError:
                raise
            except GraphdockError as error:
                # what only a kernel can see it may say in its own words
                if isinstance(error, InternalError) or (how == "planned" and not re.search(match, str(error))):
                    raise ConformanceError(f"{how}: expected an error that matches {match!r}, got {error}") from error
            else:
                raise ConformanceError(f"{how}: nothing was raised; expected an error that matches {match!r}")

    def _check_gradient(self, case: Case) -> None:
        arrays = make_arrays(case.data, case.sample, case.types, f"{case.op} {case.index} gradient")
        options = {"eps": 1e-6, "rtol": 1e-3, "atol": 1e-5, **case.data["gradcheck_options"]}
        planned = self._gradients(case, arrays, "planned", options)
        fresh = self._gradients(case, arrays, "fresh", None)
        for label, value in planned.items():
            problem = difference(fresh[label], value, {"rtol": 1e-9, "atol": 1e-11})
            if problem:
                raise ConformanceError(f"gradient of {label} with unknown dims: {problem}")

    def _gradients(
        self, case: Case, arrays: Mapping[str, Any], how: str, numeric: Mapping[str, float] | None
    ) -> dict[str, np.ndarray[Any, Any]]:
        """The gradients of a weighted sum of the outputs, by input; compared with differences where ``numeric`` is given."""
        from graphdock.gradients.backprop import gradients
        from graphdock.gradients.indexed_slices import IndexedSlices
        from graphdock.ops.convert import convert_to_tensor

        graph = Graph(self.host)
        program = build(graph, self.host.ops.get(case.op), arrays, _attrs(case), how, fed=case.data["gradcheck"])
        feed = program.feed(arrays)
        ys = [y for y in program.outputs if y.dtype.is_floating]
        if any(y.dtype.name != "float64" for y in ys):
            return {}  # a sample that narrows (Cast): differences of float32 say nothing
        session = self._session(graph, "exact" if how == "planned" else "generic", self._wide_order, "allow")
        if how == "planned":
            self._need_own_kernel(session, program, arrays, case)
        rng = np.random.default_rng(1)
        weights = [np.asarray(rng.uniform(0.5, 1.5, v.shape)) for v in session.run(ys, feed)]
        xs = [
            (name if i is None else f"{name}[{i}]", tensor)
            for name in case.data["gradcheck"]
            for i, tensor in _listed(program.inputs[name])
            if tensor.dtype.name == "float64"
        ]
        with graph.as_default():
            made = gradients(ys, [x for _, x in xs], [convert_to_tensor(w) for w in weights])
            made = [convert_to_tensor(g) if isinstance(g, IndexedSlices) else g for g in made]
        values = iter(session.run([g for g in made if g is not None], feed))
        result: dict[str, np.ndarray[Any, Any]] = {}
        for (label, tensor), g in zip(xs, made, strict=True):
            result[label] = np.asarray(next(values)) if g is not None else np.zeros_like(feed[tensor])
            if numeric is None:
                continue

            def loss(x: Any, tensor: Any = tensor) -> float:
                results = session.run(ys, {**feed, tensor: x})
                if any(r.shape != w.shape for w, r in zip(weights, results, strict=True)):
                    raise _Jump
                return float(sum(np.sum(w * r) for w, r in zip(weights, results, strict=True)))

            try:
                right = central_differences(loss, [feed[tensor]], 0, numeric["eps"])
            except _Jump:
                continue
            problem = difference(result[label], right, numeric)
            if problem:
                raise ConformanceError(f"gradient of {label} is not the numeric one: {problem}")
        return result

    # -- parts of a check

    def _need_own_kernel(self, session: Session, program: Program, arrays: Mapping[str, Any], case: Case) -> None:
        """Raise Missing when another plugin's kernel runs the op (a backend for another's device)."""
        if not self.host.ops.get(case.op).verb.kernel:
            return
        metadata = RunMetadata()
        _run(session, program, arrays, metadata)
        # what ran once counts as a step of random ops: begin again
        session._ordinals._next.clear()
        for node in metadata.plan.kernel_nodes:
            plugin = metadata.plan.placement.kernels[node].plugin
            if node.op == case.op and plugin != self.backend and f"{case.op}@{node.device.type}" not in self._pins:
                raise Missing(f"{self.backend} has no kernel for {case.id}; {plugin} has")

    def _can_stride(self, arrays: Mapping[str, Any], opdef: OpDef) -> bool:
        ranked = [
            a.ndim
            for arg in opdef.inputs
            if arg.memory != "host" and arg.dtype != "resource" and arrays.get(arg.name) is not None
            for a in (arrays[arg.name] if isinstance(arrays[arg.name], tuple) else (arrays[arg.name],))
        ]
        needed = {"StridedSlice" for r in ranked if r == 1} | {"Transpose" for r in ranked if r > 1}
        return any(r > 0 for r in ranked) and all(self.has_kernel(op) for op in needed)

    def _step(
        self, case: Case, session: Session, program: Program, arrays: Mapping[str, Any], how: str
    ) -> list[np.ndarray[Any, Any]]:
        """Run once; check that feeds are neither written nor aliased and that the inferred shapes hold."""
        feed = program.feed(arrays)
        kept = {t: a.copy() for t, a in feed.items()}
        results = _run(session, program, arrays, feed=feed)
        for tensor, array in feed.items():
            name = program.feeds[tensor][0]
            if not same_bits(array, kept[tensor]):
                raise ConformanceError(f"{how}: the kernel wrote its input {name!r}")
            if any(np.shares_memory(r, array) for r in results):
                raise ConformanceError(f"{how}: a result shares memory with the fed {name!r}")
        for i, a in enumerate(results):
            if any(np.shares_memory(a, b) for b in results[:i]) and a.size:
                raise ConformanceError(f"{how}: two results share memory")
        for tensor, result in zip(program.outputs, results, strict=False):
            if result.dtype != tensor.dtype.np:
                raise ConformanceError(f"{how}: {tensor.name} is {tensor.dtype.name}, the result {result.dtype}")
            if not compatible(tensor._dims, result.shape):
                raise ConformanceError(
                    f"{how}: the inferred shape {show(tensor._dims)} and the result's {show(result.shape)} disagree"
                )
        return results

    def _agree(self, case: Case, got: Sequence[Any], want: Sequence[Any] | None, how: str) -> None:
        if want is None:
            return
        if len(got) != len(want):
            raise ConformanceError(f"{how}: {len(got)} results, expected {len(want)}")
        for i, (a, b) in enumerate(zip(got, want, strict=True)):
            tolerance = case.data["tolerances"].get(case.types.get("T", case.dtype))
            if tolerance is None:
                tolerance = case.data["tolerances"].get(np.asarray(a).dtype.name)
            problem = difference(a, b, tolerance)
            if problem:
                raise ConformanceError(f"{how}: output {i}: {problem}")

    @staticmethod
    def _equal_bits(a: Sequence[Any], b: Sequence[Any], what: str) -> None:
        for x, y in zip(a, b, strict=True):
            if not same_bits(x, y):
                raise ConformanceError(what)


def _same_facts(got: Sequence[Any], known: Sequence[Any], how: str) -> None:
    for a, b in zip(got, known, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise ConformanceError(f"{how}: {a.dtype}{list(a.shape)}, planned {b.dtype}{list(b.shape)}")


def _run(
    session: Session,
    program: Program,
    arrays: Mapping[str, Any],
    metadata: RunMetadata | None = None,
    feed: dict[Any, Any] | None = None,
) -> list[np.ndarray[Any, Any]]:
    """Run the op once. Its outputs, or the new values of the variables it writes."""
    feed = program.feed(arrays) if feed is None else feed
    if not program.assigns:
        return [_as_array(r) for r in session.run(program.outputs, feed, run_metadata=metadata)]
    session.run(program.assigns, feed)
    plain = {t: v for t, v in feed.items() if program.feeds[t][0] not in _variables(program)}
    results = session.run([*program.outputs, program.op], plain, run_metadata=metadata)
    if program.variables:
        results = [*results[:-1], *session.run([v.value() for v in program.variables])]
    return [_as_array(r) for r in results if r is not None]


def _as_array(value: Any) -> np.ndarray[Any, Any]:
    """A fetched string of rank 0 is bytes, of which NumPy would make a fixed-width array."""
    return np.array(value, object) if isinstance(value, (bytes, str)) else np.asarray(value)


def _variables(program: Program) -> set[str]:
    return {name for name, value in program.inputs.items() if hasattr(value, "handle")}


def _attrs(case: Case) -> dict[str, Any]:
    """The sample's attributes, and the type variables that no input binds."""
    attrs = dict(case.sample["attrs"])
    bound = set(case.data["args"].values())
    for var, name in case.types.items():
        if var not in bound and var not in attrs:
            attrs[var] = name
    return attrs


def _copied(value: Any) -> Any:
    if isinstance(value, tuple):
        return [v.copy() for v in value]
    return None if value is None else value.copy()


def _listed(value: Any) -> list[tuple[int | None, Any]]:
    if isinstance(value, list):
        return list(enumerate(value))
    return [] if value is None else [(None, value)]


def _in_float64(opdef: OpDef, data: Mapping[str, Any], sample: Mapping[str, Any]) -> dict[str, str] | None:
    """The dtypes in which a sample's gradient can be checked, or None."""
    wanted = {data["args"][name] for name in data["gradcheck"]}
    for types in bindings(opdef, data, sample):
        if all(types.get(var, var) == "float64" for var in wanted):
            return types
    return None
