"""Conformance of a backend with the op specs: every op, dtype, sample and kernel, in every mode a plan may run a kernel in.

The cases come from the op libraries' specs, so that the author of a backend writes none:

    kit = Conformance("mychip")
    for case in kit.cases():
        kit.check(case)          # raises Missing, or ConformanceError with what is wrong

``pytest --graphdock-backend mychip`` does the same with a compliance table (:mod:`graphdock_testing.pytest_plugin`).

What a ``value`` case checks: the result against the spec's oracle (on cpu) or the cpu's result (elsewhere), twice with
other numbers in between (a kernel that keeps something fails) and bit by bit against itself; with shapes known, dims
unknown and rank unknown; over strided inputs; over inputs whose buffers the plan owns (a view that is made only once, an
output that takes over its input); outside of debug mode (where a device records); that no fed array was written and none is
aliased by a result; that the inferred shape agrees; and that the op's decomposition computes the same. Whatever the memory, each
call of a kernel leaves its inputs as they are, writes nothing beside its outputs, and takes nothing for granted that was in them or
in its scratch buffers before (:mod:`graphdock_executor.kernel_sanitizer`). ``error`` cases must raise the message of the spec.
``edge`` cases hold kernels without elements, beyond a block, in other shapes, and of NaN and infinities, ``drawn`` cases with dims
of 0 and 1, without a rank, and at the ends of dtypes (:mod:`graphdock_testing.facts.edges`); ``fact`` cases hold what an op
declares of itself; ``pattern`` and ``compiler`` cases the package's patterns and region compilers (:mod:`graphdock_testing.facts`).
``law`` cases hold executors, passes, placers, forms of graphs and of checkpoints to what :mod:`graphdock_testing.laws` and
:mod:`graphdock_testing.checkpoint_laws` say, and transports to :mod:`graphdock_testing.transport_laws`.
``late`` cases run a kernel behind a busy queue (:mod:`graphdock_testing.adversary.late_case`), ``threads`` cases in two steps at
once (:mod:`graphdock_testing.threads_case`).
``gradient`` cases compare ``gradients`` with central differences in float64 and complex128. On a device with queues that has
``extent`` each case runs under the race checker (:mod:`graphdock_testing.driver.races`).

Where a backend has several kernels for an op, or one with a label, each of them is pinned and checked in cases of its own. Devices
that the backend brings have ``device`` cases: memory, copies, queues and recordings (:mod:`graphdock_testing.device_check`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.kernel_facts import check_against
from graphdock.contracts.opdef import OpDef
from graphdock.contracts.queue import QueuedDevice
from graphdock.errors import (
    ConfigError,
    DeviceUnavailable,
    GraphdockError,
    KernelNotFoundError,
    NotFoundError,
    did_you_mean,
    format_error,
)
from graphdock.plugin.host import Host, default_host
from graphdock.plugin.kernel_registry import RegisteredKernel
from graphdock_opgen.samples import bindings
from graphdock_opgen.spec_cases import spec_cases

from graphdock_testing.adversary.late_case import check_late
from graphdock_testing.bench import Bench
from graphdock_testing.case import Case, ConformanceError, Missing, Refused, Seen, Untested
from graphdock_testing.device_check import check_device, checks_of
from graphdock_testing.driver.detector import RaceError
from graphdock_testing.facts.compiler_case import check_compiler
from graphdock_testing.facts.compiler_graphs import kinds_of
from graphdock_testing.facts.edge_case import check_drawn, check_edges, has_drawn, has_edges
from graphdock_testing.facts.fact_case import check_facts, facts_of
from graphdock_testing.facts.pattern_case import check_pattern, registered_patterns
from graphdock_testing.facts.random_case import check_random
from graphdock_testing.gaps import gaps_of
from graphdock_testing.gradient_case import check_gradient, wide_types
from graphdock_testing.laws import PARTS, laws_of
from graphdock_testing.threads_case import check_threads, has_threads
from graphdock_testing.value_check import check_error, check_value
from graphdock_testing.watching import Watching

__all__ = ["Case", "Conformance", "ConformanceError", "Missing", "Refused", "Untested"]

_CHECKS = {
    "value": check_value,
    "error": check_error,
    "gradient": check_gradient,
    "edge": check_edges,
    "drawn": check_drawn,
    "fact": check_facts,
    "random": check_random,
    "late": check_late,
    "threads": check_threads,
}
#: What the cases of a device type have for an op: this and the type.
_DEVICE = "device "
#: Likewise of a pattern and of a region compiler: this and the full name.
_PATTERN, _COMPILER = "pattern ", "compiler "
#: Import packages whose ops the plugin ``cpu`` answers for: those that graphdock itself brings.
_OWN = "graphdock"


class Conformance:
    """The kit for one backend.

    Args:
      backend: name of an installed (or registered) plugin that has kernels.
      pins: kernels to use instead of the backend's own, as in ``SessionConfig.kernels``; for tests of the kit itself.
      host: where the ops and the backend's kernels and devices are; default: the process's own.
      oracle: ``"reference"`` for the specs' oracles, or the backend to agree with; default: the oracles for cpu, else cpu.

    Attributes:
      devices: what the cases of the backend's own devices have for an op: ``["device mychip"]``.
      parts: likewise of its patterns, region compilers, executors, passes and forms of graphs: ``["pattern mychip.gelu",
        "compiler mychip.region", "executor mine"]``.
      absent: why nothing can be checked here: none of the devices that the backend's kernels run on is there; else None.

    Raises:
      UnknownBackendError, PluginError: there is no such backend, or it can't be used.
      InvalidArgumentError: a kernel of it names what its op does not have.
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
        loaded = self.host.backend(backend)
        kinds = loaded.device_types or loaded.kernel_devices
        oracle = oracle or ("reference" if backend == "cpu" or not kinds else "cpu")
        if oracle != "reference":
            self.host.backend(oracle)
        self._check_names()
        patterns = {f"{_PATTERN}{r.full_name}": r for r in registered_patterns(self.host, backend)}
        compilers = {f"{_COMPILER}{r.full_name}": r for r in self.host.region_compilers.all() if r.plugin == backend}
        self._lawful = {
            f"{kind} {name}": (check, name)
            for kind, (registry, check) in PARTS.items()
            for name in getattr(self.host, registry).names_of(backend)
        }
        self._parts: dict[str, Any] = {**patterns, **compilers, **self._lawful}
        self.parts = list(self._parts)
        self._kinds = kinds or ("cpu",)  # kernels in host memory serve any device
        self.devices = [_DEVICE + kind for kind in loaded.device_types]
        owners, self.absent = self._owners()
        order = dict.fromkeys([backend, *owners])
        self._bench = Bench(self.host, backend, tuple(order), tuple(dict.fromkeys([*order, "cpu"])), self._pins, oracle)
        self._all: dict[str, Mapping[str, Any]] = {}
        for package in self.host.ops.spec_packages():
            self._all.update(spec_cases(package, self.host.ops.get))
        state = next((s for s in self.host.plugins() if s.name == backend), None)
        manifest = state.manifest if state is not None else None
        self._xfails = manifest.xfails if manifest is not None else ()

    def _check_names(self) -> None:
        for item in self.host.kernels.all():
            if item.plugin == self.backend and item.kernel.op in self.host.ops:
                check_against(item.kernel, self.host.ops.get(item.kernel.op), self.backend)

    def _owners(self) -> tuple[list[str], str | None]:
        """The plugins whose devices the backend's kernels run on, and why there is none."""
        owners: list[str] = []
        reasons: list[str] = []
        for kind in self._kinds:
            try:
                self.host.device_infos(kind)
            except DeviceUnavailable as error:
                reasons.append(f"no {kind}: {error.reason}")
                continue
            except NotFoundError as error:
                reasons.append(error.message)
                continue
            owner = self.host.devices.entry(kind)
            assert owner is not None
            owners.append(owner[1])
        return owners, None if owners or not reasons else "; ".join(reasons)

    # -- what there is

    @property
    def ops(self) -> list[str]:
        """Every op with samples, sorted."""
        return sorted(op for op, data in self._all.items() if data["samples"] or data["errors"])

    @property
    def of_parts_alone(self) -> bool:
        """Return whether the backend brings parts, such as a compiler, a pass or an executor, and neither ops, kernels nor devices.

        Nothing of an op is its to answer for then.
        """
        own = self.host.backend(self.backend).package
        ops = any(self.host.ops.get(op).package == own for op in self._all)
        kernels = any(r.plugin == self.backend for r in self.host.kernels.all())
        return bool(self.parts) and not (self.devices or kernels or ops)

    @property
    def untested(self) -> list[str]:
        """The ops that the backend has kernels for and whose specs have no samples, sorted: no value of them is checked."""
        mine = {
            r.kernel.op for r in self.host.kernels.all() if r.plugin == self.backend and r.kernel.op in self.host.ops
        }
        return sorted(op for op in mine if not self._all.get(op, {}).get("samples"))

    def has_kernel(self, op: str) -> bool:
        """Return whether the backend brings a kernel for the op, whatever the dtypes; true for what the host runs itself."""
        if not self.host.ops.get(op).verb.kernel or any(pin.partition("@")[0] == op for pin in self._pins):
            return True
        return bool(self.kernels(op))

    def kernels(self, op: str) -> list[RegisteredKernel]:
        """The backend's kernels of an op, those with labels included."""
        return [r for r in self.host.kernels.for_op(op) if r.plugin == self.backend]

    def cases(self, op: str | None = None, kernels: Sequence[str] = ()) -> Iterator[Case]:
        """Every case of every device and op, or of one.

        Args:
          op: an op type, or one of ``devices``.
          kernels: only cases that pin one of these: full or short names, or labels. Default: the kernel that the backend chooses,
            and, where it has several or one with a label, each of them.

        Raises:
          NotFoundError: no op library has samples of ``op``.
        """
        if op in self.devices or op is None and not kernels:
            for device in self.devices if op is None else [op]:
                yield from self._device_cases(device)
        if op in self._parts or op is None and not kernels:
            for part in self._parts if op is None else [op]:
                if part in self._lawful:
                    laws = laws_of(part.removesuffix(f" {self._lawful[part][1]}"))
                    yield from (Case(part, "law", i, {}, {"check": law}) for i, law in enumerate(laws))
                    continue
                checks = ["samples"] if part.startswith(_PATTERN) else kinds_of(self._parts[part].compiler)
                for index, check in enumerate(checks):
                    yield Case(part, part.partition(" ")[0], index, {}, {"check": check})
        if op in self.devices or op in self._parts:
            return
        if op is not None and op not in self._all:
            raise NotFoundError(f"no op library has conformance cases of {op!r}", hint=did_you_mean(op, self._all))
        for name in [op] if op is not None else self.ops:
            for pinned in self._pinned(name, kernels):
                for case in self._cases(name):
                    if pinned is None:
                        yield case
                    elif _may_take(pinned, case):
                        yield replace(case, kernel=pinned.full_name)

    def _device_cases(self, device: str) -> Iterator[Case]:
        if self.absent is None:
            for index, name in enumerate(checks_of(self._device(device))):
                yield Case(device, "device", index, {}, {"check": name})

    def _pinned(self, op: str, wanted: Sequence[str]) -> list[RegisteredKernel | None]:
        mine = self.kernels(op)
        if wanted:
            return [r for r in mine if {r.full_name, r.kernel.short_name, r.kernel.label} & set(wanted)]
        labelled = [r for r in mine if r.kernel.label]
        chosen: list[RegisteredKernel | None] = [] if mine and len(labelled) == len(mine) else [None]
        if any(pin.partition("@")[0] == op for pin in self._pins):
            return [None]
        return [*chosen, *(mine if len(mine) > 1 else labelled)]

    def _cases(self, name: str) -> Iterator[Case]:
        data, opdef = self._all[name], self.host.ops.get(name)
        for index, sample in enumerate(data["samples"]):
            for types in bindings(opdef, data, sample):
                yield Case(name, "value", index, types, data)
        for index, sample in enumerate(data["errors"]):
            for types in bindings(opdef, data, sample):
                yield Case(name, "error", index, types, data)
                break
        for kind in self._more_kinds(opdef):
            for index, sample in enumerate(data["samples"]):
                for number, types in enumerate(bindings(opdef, data, sample)):
                    if index == 0 or number == 0:
                        yield Case(name, kind, index, types, data)
        if data["samples"] and self._is_queued(name):
            yield Case(name, "late", 0, next(iter(bindings(opdef, data, data["samples"][0]))), data)
        if data["samples"] and has_threads(opdef):
            yield Case(name, "threads", 0, next(iter(bindings(opdef, data, data["samples"][0]))), data)
        if data["gradcheck"]:
            for index, sample in enumerate(data["samples"]):
                for types in wide_types(opdef, data, sample):
                    yield Case(name, "gradient", index, types, data)

    def against(self, op: str) -> str:
        """What an op's results are held against: ``reference``, ``cpu``, ``formula``, ``decomposition``; ``itself`` is nothing.

        Of a device, a pattern or a compiler: what they are held against.
        """
        if op in self.devices or op in self._parts:
            kind = op.partition(" ")[0]
            return {"device": "contract", "pattern": "its ops", "compiler": "its nodes"}.get(kind, "laws")
        opdef, oracle = self.host.ops.get(op), self._bench.oracle
        if oracle != "reference" and any(r.plugin == "cpu" for r in self.host.kernels.for_op(op)):
            return oracle
        if opdef.reference is not None:
            return "reference"
        if opdef.scalar is not None or opdef.region is not None and "random" not in opdef.effects:
            return "formula"
        return "itself" if opdef.decomposition is None else "decomposition"

    def gaps(self, op: str, dtypes: Collection[str], seen: Seen) -> list[str]:
        """What a run of an op's cases says nothing of: each is a line of the table.

        Args:
          dtypes: of the cases that ran. seen: what their steps reached, together.
        """
        if op in self.devices or op in self._parts or not self.kernels(op):
            return []
        return gaps_of(self.host.ops.get(op), self._all[op], self.kernels(op), self.against(op), dtypes, seen)

    def answers_for(self, opdef: OpDef) -> bool:
        """Return whether the backend's own package declares the op; ``cpu`` answers for those that graphdock brings."""
        package = self.host.backend(self.backend).package
        return opdef.package == package or self.backend == "cpu" and opdef.package.startswith(_OWN)

    def _is_queued(self, op: str) -> bool:
        """Return whether a kernel of the backend's runs the op on a device with queues."""
        if self.absent is not None or not self.kernels(op):
            return False
        kinds = {r.facts.device for r in self.kernels(op)} & set(self._kinds)
        return any(isinstance(self.host.open_device(f"/device:{kind}:0"), QueuedDevice) for kind in kinds)

    def _more_kinds(self, opdef: OpDef) -> list[str]:
        """Kinds of cases that are asked of the first sample in every dtype, and of the others in one."""
        random = ["random"] if "random" in opdef.effects and self.has_kernel(opdef.name) else []
        facts = ["fact"] if self.answers_for(opdef) and facts_of(opdef) else []
        drawn = ["drawn"] if has_drawn(opdef) else []
        return [*(["edge"] if has_edges(opdef) else []), *drawn, *facts, *random]

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

    def check(self, case: Case, brief: bool = False) -> Seen:
        """Run one case. Returns what its steps reached.

        Args:
          brief: in plans of known shapes alone. That says whether a kernel is right in a dtype, where another case of the op has
            said how it does in the other modes.

        Raises:
          Missing: the backend has no kernel for it, or no device. Refused: the pinned kernel is not for it. ConformanceError: what
          is wrong.
        """
        if self.absent is not None:
            raise Missing(self.absent)
        whole = case.kind in ("device", "pattern", "compiler", "fact", "law")
        if not whole and not self.has_kernel(case.op):
            raise Missing(f"{self.backend} has no kernel for {case.op}")
        bench = replace(self._bench_for(case), brief=brief, seen=Seen())
        try:
            with self.watching.case():
                if case.kind == "device":
                    check_device(self._device(case.op), case.data["check"])
                elif case.kind == "pattern":
                    check_pattern(bench, self._parts[case.op])
                elif case.kind == "law":
                    check, name = self._lawful[case.op]
                    check(name, case.data["check"], self.host)
                elif case.kind == "compiler":
                    check_compiler(bench, self._parts[case.op], case.data["check"])
                else:
                    _CHECKS[case.kind](bench, case)
        except RaceError as error:
            raise ConformanceError(f"{case.id}: {error}") from error
        except KernelNotFoundError as error:
            raise Missing(f"{self.backend} has no kernel for {case.id}: {error.message}") from error
        except ConformanceError as error:
            raise ConformanceError(f"{case.id}: {error}") from error
        except GraphdockError as error:
            error.site = None  # the kit made the op: there is no line of anybody's
            if case.kernel and isinstance(error, ConfigError) and error.op is not None:  # the pin does not fit a node
                raise Refused(f"{case.kernel} does not take {case.id}: {error.message}") from error
            raise ConformanceError(f"{case.id}: {format_error(error)}") from error
        return bench.seen

    def _device(self, op: str) -> Device:
        return self.host.open_device(f"/device:{op.removeprefix(_DEVICE)}:0")

    def _bench_for(self, case: Case) -> Bench:
        """With the case's kernel pinned on its device type, and with who brings that."""
        kernels = [r.kernel for r in self.kernels(case.op) if r.full_name == case.kernel] if case.kernel else []
        kinds = [k for kernel in kernels for k in (self._kinds if kernel.device == HOST_MEMORY else (kernel.device,))]
        if not kinds:
            return self._bench
        try:
            self.host.device_infos(kinds[0])
        except DeviceUnavailable as error:
            raise Missing(f"no {kinds[0]}: {error.reason}") from error
        owner = self.host.devices.entry(kinds[0])
        assert owner is not None
        return replace(
            self._bench,
            order=tuple(dict.fromkeys([*self._bench.order, owner[1]])),
            pins={**self._pins, **{f"{case.op}@{kind}": case.kernel for kind in kinds}},
            device=kinds[0],
        )


def _may_take(registered: RegisteredKernel, case: Case) -> bool:
    """Return whether the kernel takes the case's dtypes."""
    return all(case.types.get(var, names[0]) in names for var, names in registered.kernel.types.items() if names)
