"""The sessions that conformance runs: which backends they have, which kernel they pin, and what a step of one gives."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from graphdock.config.session_config import SessionConfig
from graphdock.contracts.kernel import KernelDef
from graphdock.contracts.opdef import OpDef, resolve
from graphdock.dtypes import DType
from graphdock.graph.graph import Graph
from graphdock.passes.pipeline import simplifications
from graphdock.plugin.host import Host
from graphdock.session.run_options import RunMetadata
from graphdock.session.session import Session
from graphdock.shape import compatible, show

from graphdock_testing.case import Case, ConformanceError, Missing, Refused, Seen
from graphdock_testing.numeric import difference, same_bits
from graphdock_testing.programs import Program, build

__all__ = ["Bench", "Results", "run_program"]

Results = list[np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Bench:
    """What one case is checked with.

    Attributes:
      order: the backend, and whose devices it needs. ``wide_order``: with cpu behind it, for the ops around the one in question.
      pins: as in ``SessionConfig.kernels``.
      oracle: ``"reference"`` for the specs' oracles, or the backend to agree with.
      device: the device type to place the op on; None for the backend's first.
      brief: only plans of known shapes are tried, and not the other modes.
      seen: what the steps reached.
    """

    host: Host
    backend: str
    order: tuple[str, ...]
    wide_order: tuple[str, ...]
    pins: Mapping[str, str]
    oracle: str
    device: str | None = None
    brief: bool = False
    seen: Seen = field(default_factory=Seen)

    def build(self, graph: Graph, *args: Any, **options: Any) -> Program:
        """:func:`graphdock_testing.programs.build`, on the device."""
        with graph.device(self.device):
            return build(graph, *args, **options)

    def open(
        self,
        graph: Graph,
        policy: Literal["exact", "generic"] = "exact",
        wide: bool = False,
        plain: bool = False,
        deterministic: bool = False,
    ) -> Session:
        """A session without passes, in debug mode unless it is ``plain``; a ``wide`` one may use cpu's kernels, too."""
        config = SessionConfig(
            backends=self.wide_order if wide else self.order,
            fallback="allow" if wide else "forbid",
            kernels=self.pins,
            passes=dict.fromkeys(simplifications(), False),
            shape_policy=policy,
            debug=not plain,
            deterministic=deterministic,
        )
        return Session(graph=graph, config=config, host=self.host)

    def own_kernel(self, session: Session, program: Program, arrays: Mapping[str, Any], case: Case) -> KernelDef | None:
        """The kernel that runs the op; None when the host does. Runs one step that counts for nothing.

        Raises:
          Missing: it is another plugin's (a backend for another's device).
          Refused: its kernels refuse the node, which its decomposition computes.
        """
        if not self.host.ops.get(case.op).verb.kernel:
            return None
        metadata = RunMetadata()
        run_program(session, program, arrays, metadata)
        # what ran once counts as a step of random ops: begin again
        session._ordinals._next.clear()
        found = None
        if self.host.ops.get(case.op).decomposition is not None and not any(
            n.op == case.op for n in metadata.plan.kernel_nodes
        ):
            raise Refused(f"the kernels of {self.backend} refuse {case.id}; what {case.op} decomposes to ran instead")
        for node in metadata.plan.kernel_nodes:
            registered = metadata.plan.placement.kernels[node]
            if node.op != case.op:
                continue
            if registered.plugin != self.backend and f"{case.op}@{node.device.type}" not in self.pins:
                raise Missing(f"{self.backend} has no kernel for {case.id}; {registered.plugin} has")
            if case.kernel and registered.full_name != case.kernel:
                raise ConformanceError(f"{case.kernel} is pinned, and {registered.full_name} ran")
            found = registered.kernel
        return found

    def expected(self, case: Case, opdef: OpDef, program: Program, arrays: Mapping[str, Any], ordinal: int) -> Any:
        """The right results, flattened; None where nothing says what they are."""
        cpu = any(r.plugin == "cpu" for r in self.host.kernels.for_op(case.op))
        if self.oracle != "reference" and (cpu or not opdef.verb.kernel):
            passes = dict.fromkeys(simplifications(), False)
            config = SessionConfig(
                backends=(self.oracle,), passes=passes, fallback="allow"
            )  # wherever the op is placed
            session = Session(graph=program.op.graph, config=config, host=self.host)
            for _ in range(ordinal + 1):
                results = run_program(session, program, arrays)
            return results
        if case.data["reference"] is None:
            return None
        attrs = program.op.node_attrs
        oracle = resolve(case.data["reference"])
        known = {n: v.np if isinstance(v, DType) else v for n, v in attrs.items()}
        if "random" in opdef.effects:
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

    def step(self, session: Session, program: Program, arrays: Mapping[str, Any], how: str) -> Results:
        """Run once; check that feeds are neither written nor aliased and that the inferred shapes hold."""
        feed = program.feed(arrays)
        kept = {t: a.copy() for t, a in feed.items()}
        results = run_program(session, program, arrays, feed=feed)
        self.seen.modes.add(how)
        self.seen.size = max([self.seen.size, *(a.size for a in (*feed.values(), *results))])
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


def agree(case: Case, got: Sequence[Any], want: Sequence[Any] | None, how: str, slack: Any = 0.0) -> None:
    """Raise ConformanceError unless two results are equal within the spec's tolerances; ``want`` None is unknown.

    Args:
      slack: what elements may differ by whatever the tolerances are.
    """
    if want is None:
        return
    if len(got) != len(want):
        raise ConformanceError(f"{how}: {len(got)} results, expected {len(want)}")
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        tolerance = case.data["tolerances"].get(case.types.get("T", case.dtype))
        if tolerance is None:
            tolerance = case.data["tolerances"].get(np.asarray(a).dtype.name)
        problem = difference(a, b, tolerance, slack)
        if problem:
            raise ConformanceError(f"{how}: output {i}: {problem}")


def run_program(
    session: Session,
    program: Program,
    arrays: Mapping[str, Any],
    metadata: RunMetadata | None = None,
    feed: dict[Any, Any] | None = None,
) -> Results:
    """Run the op once. Its outputs, or the new values of the variables it writes."""
    feed = program.feed(arrays) if feed is None else feed
    if not program.assigns:
        return [_as_array(r) for r in session.run(program.outputs, feed, run_metadata=metadata)]
    session.run(program.assigns, feed)
    variables = {name for name, value in program.inputs.items() if hasattr(value, "handle")}
    plain = {t: v for t, v in feed.items() if program.feeds[t][0] not in variables}
    results = session.run([*program.outputs, program.op], plain, run_metadata=metadata)
    if program.variables:
        results = [*results[:-1], *session.run([v.value() for v in program.variables])]
    return [_as_array(r) for r in results if r is not None]


def _as_array(value: Any) -> np.ndarray[Any, Any]:
    """A fetched string of rank 0 is bytes, of which NumPy would make a fixed-width array."""
    return np.array(value, object) if isinstance(value, (bytes, str)) else np.asarray(value)


def _copied(value: Any) -> Any:
    if isinstance(value, tuple):
        return [v.copy() for v in value]
    return None if value is None else value.copy()
