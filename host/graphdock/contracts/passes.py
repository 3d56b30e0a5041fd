"""Passes: what a plugin changes in plans while they are made, at one of six moments.

A pass is a function of a plan graph, or of one level of it, that changes it through a
:class:`graphdock.contracts.rewriter.Rewriter` and returns nothing. It comes by the hook ``register_passes``; those of every allowed
plugin take part, whatever ``backends`` lists, and ``passes = {name = false}`` in the configuration switches one off. The host's own
passes are rows of the same table.

After each pass of a third party the host checks grammar and order of the graph, and names the pass and the node where it is broken.

Threads: a pass runs under the planner's lock, or, on a graph that another pass traced, under the host's; plans of several sessions
are made at once. What a pass keeps between plans it keeps in :attr:`PlanContext.shared`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from graphdock.contracts.bodies import LoopWriter
from graphdock.contracts.ir import PlanGraph, PlanNode, Region, Value, make_node
from graphdock.contracts.kernel import KernelDef
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.opdef import OpDef
from graphdock.dtypes import DType
from graphdock.shape import Dims

if TYPE_CHECKING:
    import numpy as np

    from graphdock.contracts.pattern import RegisteredPattern
    from graphdock.contracts.region import RegisteredCompiler

__all__ = [
    "PHASES",
    "Changed",
    "Pass",
    "PassContext",
    "PlanContext",
    "RegionNote",
    "Replacement",
    "Swap",
    "Tracing",
]

#: Phase -> when its passes run, and on what.
PHASES: Mapping[str, str] = MappingProxyType(
    {
        "translate": "as the user's graph becomes a plan graph, which is empty yet: returns what writes loops out, or None",
        "simplify": "before placement: on every level, outer ones first, among the host's own; again after any other change there",
        "rewrite": "before placement: once, on the simplified plan; where one changes it, it is simplified again",
        "placed": "after placement: nodes have devices; what a pass adds is placed then",
        "chosen": "after the choice of kernels: nodes have those too, and may be given others",
        "memory": "before memory is planned: nodes may change their order, or go, and none may be added",
    }
)


@lazy_dataclass(frozen=True, slots=True)
class RegionNote:
    """Outcome for nodes that a pass looked at together; a line of ``explain``.

    Attributes:
      compiler: full name of the region compiler or the pattern. ``device``: where the nodes are. ``ops``: their op types.
      claimed: how many it took; 0 when it refused.
      what: what they became, or why it refused.
      pattern: whether a pattern says it, of a place that was found.
      by_host: whether the reason is the host's, not the compiler's.
    """

    compiler: str
    device: str
    ops: tuple[str, ...]
    claimed: int
    what: str
    pattern: bool = False
    by_host: bool = False


@lazy_dataclass(frozen=True, slots=True)
class Replacement:
    """Nodes for which a pass made another one, in case all of its kernels refuse when they are prepared.

    Attributes:
      key: by which the pass knows the place when it sees it again: it is in :attr:`PlanContext.failed` then, with the reason.
      region: the nodes that are put back; None where they are gone, and the plan is begun anew.
    """

    key: Hashable
    region: Region | None = None


@lazy_dataclass(frozen=True, slots=True)
class Swap:
    """Two transfers, in no graph yet: of a value to the host's memory, and of what they leave there back to the device's.

    Attributes:
      out, back: nodes; ``back`` reads what ``out`` makes, and stands for the value behind it.
      seconds: about how long both take; None where nobody knows.
    """

    out: PlanNode
    back: PlanNode
    seconds: float | None


class Tracing(Protocol):
    """A graph of the user's kind that a pass builds through functions of ops; see :attr:`PlanContext.trace`."""

    def input(self, dtype: DType, declared: Dims, fed: Dims) -> Any:
        """A tensor that enters: of the shape ``declared`` while the graph is built, of ``fed`` in the plan graph of it."""

    def like(self, tensor: Any, fed: Dims) -> Any:
        """A tensor that enters, of the dtype and the shape that another one has while the graph is built."""

    def constant(self, array: np.ndarray[Any, Any], dtype: DType) -> Any:
        """A tensor of these elements."""

    def is_tensor(self, value: Any) -> bool:
        """Return whether a function returned a tensor."""

    def shapes(self, tensors: Sequence[Any]) -> list[Dims]:
        """The shapes that tensors have in the plan graph."""

    def gradients(self, ys: Sequence[Any], xs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """The gradients of ``ys`` by each of ``xs``, given those that arrive at ``ys``; None for one that does not exist."""


@lazy_dataclass(frozen=True)
class PassContext:
    """Questions that every pass may ask.

    Attributes:
      evaluate: computes a node over constants on host memory; None where no kernel can, or it would take too long.
      opdef: the OpDef of a type. Raises UnknownOpError. ``const``: that of constants.
      options: of the pass's plugin, as the session's configuration has them, defaults filled in.
      computes: whether the device that a node prefers has a kernel for it. A pass that makes nodes of op types that the program
        does not have asks first: a device need not have kernels for all.
      notes: what ``explain`` says of the pass: records, or lines of text. Emptied before the pass runs, but in the phase
        ``simplify``, of whose runs over one plan each line is kept once.
    """

    evaluate: Callable[[PlanNode], list[np.ndarray[Any, Any]] | None]
    opdef: Callable[[str], OpDef]
    const: OpDef
    options: Mapping[str, Any] = field(default_factory=dict)
    computes: Callable[[PlanNode], bool] = lambda node: True
    notes: list[RegionNote | str] = field(default_factory=list)

    def constant(self, like: PlanNode, value: Value, array: np.ndarray[Any, Any]) -> PlanNode:
        """A node of the elements of ``array`` that stands for ``value``, which ``like`` makes; in no graph yet."""
        import numpy as np  # which `import graphdock` does without

        array = np.ascontiguousarray(array).reshape(array.shape)
        array.flags.writeable = False
        return make_node(
            self.const,
            value.name,
            [],
            {"value": array, "dtype": value.dtype},
            [(value.dtype, array.shape)],
            site_of=like.site_of,
            origins=like.origins,
        )


@lazy_dataclass(frozen=True)
class PlanContext(PassContext):
    """Questions that a pass of a phase other than ``simplify`` may ask; one per pass and plan.

    Attributes:
      switches: name of every pass of the session -> whether it runs.
      device_type: the type of device that a node prefers, or is on; None where the session has none of it.
      missing: why nodes can't run on a device type, all of them; empty if they can.
      flops: estimate for one run of a node; None where it is unknown.
      seconds: about how long one run of a node takes; None where nobody knows.
      memory_budget: device type -> bytes that planned buffers should take at most, as the configuration says.
      records: whether the first device records what it launches, so that nothing should steer the step from outside.
      patterns: ``patterns(graph)``, those of the host whose anchors a graph holds, where they are looked for.
      compilers: those of the host. Both in the order in which they are asked; none where fusion is off.
      kernels: node -> its kernel, of those that have one, from the phase ``placed`` on. In the phase ``chosen`` a copy of a
        node may be given what the node has.
      give: ``give(node, kernel, compiler)``, in the phase ``chosen``: a new node is computed by this kernel, which the compiler
        brings, or the pass itself. Its ``device`` and ``decision`` are set as well.
      swap: ``swap(value)``, from the phase ``placed`` on: new transfers that take a value of a device to the host's memory for a
        while; None where that frees nothing (its memory is the host's), where the step would wait for them (its device has no
        queues), or where bytes are not known.
      derive: ``derive(value, key, dims, fill)``, in the phase ``chosen``: a new node that reads, in place of a variable's value,
        what ``fill(array, room)`` made of that, of these dims; before it comes the node of its only input, a handle. It stays from
        step to step, of all plans that share the key, and is made again when the variable was written. None where it can't stay:
        the plan writes the variable, or waits for other steps, or the session is to save memory. ``transient``:
        ``transient(value)`` says why, of the value of a variable; empty where it could stay, and of any other value.
      trace: ``trace(build)`` calls ``build`` with a :class:`Tracing`, in an empty graph; of the tensors that it returns comes a
        plan graph, whose inputs are in the order in which they were made. What ops raise while it is built passes through.
      simplify: runs the session's passes of the phase ``simplify`` over a graph.
      shared: kept for all sessions of the host, until a plugin is discarded; changed under ``lock``. ``settings``: what of the
        session's settings ``simplify`` depends on, for keys.
      replacements: node that the pass made -> what it stands for. ``failed``: key of such -> why all of its kernels refused. A
        place of such a key must be left alone.
    """

    switches: Mapping[str, bool] = field(default_factory=dict)
    device_type: Callable[[PlanNode], str | None] = lambda node: None
    missing: Callable[[PlanGraph, str], str] = lambda graph, device_type: ""
    flops: Callable[[PlanNode], int | None] = lambda node: None
    seconds: Callable[[PlanNode], float | None] = lambda node: None
    memory_budget: Mapping[str, int] = field(default_factory=dict)
    records: bool = False
    patterns: Callable[[PlanGraph], Sequence[RegisteredPattern]] = lambda graph: ()
    compilers: Sequence[RegisteredCompiler] = ()
    kernels: MutableMapping[PlanNode, Any] = field(default_factory=dict)
    give: Callable[[PlanNode, KernelDef, RegisteredCompiler | None], None] = lambda node, kernel, compiler: None
    swap: Callable[[Value], Swap | None] = lambda value: None
    derive: Callable[[Value, str, Dims, Callable[[Any, Any], object]], PlanNode | None] = lambda *request: None
    transient: Callable[[Value], str] = lambda value: ""
    trace: Callable[[Callable[[Tracing], Sequence[Any]]], PlanGraph] = lambda build: PlanGraph("none")
    simplify: Callable[[PlanGraph], object] = lambda graph: None
    shared: MutableMapping[Any, Any] = field(default_factory=dict)
    lock: AbstractContextManager[Any] = field(default_factory=nullcontext)
    settings: Hashable = ()
    replacements: dict[PlanNode, Replacement] = field(default_factory=dict)
    failed: dict[Hashable, str] = field(default_factory=dict)


#: The function of a pass. ``Any`` is a PassContext in the phase ``simplify``, a PlanContext in all others.
Changed: TypeAlias = "Callable[[PlanGraph, Any], LoopWriter | None]"


@lazy_dataclass(frozen=True, slots=True)
class Pass:
    """One pass.

    Attributes:
      name: what ``passes = {name = false}`` switches off; no two plugins have passes of one name.
      phase: one of :data:`PHASES`. ``order``: smaller ones come first, within the phase; the host's own are 10, 20, ... apart.
      summary: what it does, in a few words.
      run: ``run(graph, context)``, or where it is, as ``"package.module:function"``, which is imported when it is first needed.
        Idempotent. In the phases ``placed`` and ``chosen`` it runs again where a kernel refuses.
      wants: whether a node of a level, its bodies aside, is one that the pass begins at: it is called, and imported, for graphs
        that hold one. None: for all.
      on: whether it runs when the configuration says nothing.
      sample: ``sample(rng)`` builds in the default graph what the pass changes, and gives what is fetched and what is fed,
        ``(fetches, {tensor: array})``; or where it is, as ``run``. Conformance compares such graphs with the pass and without it.
    """

    name: str
    phase: str
    order: int
    summary: str
    run: Changed | str
    wants: Callable[[PlanNode], object] | None = None
    on: bool = True
    sample: Callable[[Any], tuple[Any, Mapping[Any, Any]]] | str | None = None
