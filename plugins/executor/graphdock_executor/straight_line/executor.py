"""The stages of the straight-line executor: from a placed graph to the generated function and the memory it needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field

from graphdock.contracts.device import Device
from graphdock.contracts.executor import Executor, PlacedGraph, run_stages
from graphdock.contracts.ir import PlanGraph, PlanNode
from graphdock.contracts.kernel import KernelDef
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.queue import can_record
from graphdock.contracts.rewriter import Rewriter

from graphdock_executor.liveness import Liveness, analyse
from graphdock_executor.lower import Lowered, LoweringInput, lower
from graphdock_executor.step_program.printer import Source, print_step
from graphdock_executor.storage import Root, pack
from graphdock_executor.straight_line.program import StraightLineProgram

__all__ = ["Compilation", "StraightLine", "capturing_device", "feeds_first"]


def capturing_device(
    graph: PlanGraph, kernels: Mapping[PlanNode, KernelDef], device_of: Callable[[PlanNode], Device]
) -> Device | None:
    """The device that may record parts of this placed plan: the one with most kernels of those that can. None if none can."""
    placed = {id(n.device): n for level in graph.all_graphs() for n in level.nodes if n in kernels}
    if not any([can_record(device_of(n)) for n in placed.values()]):
        return None
    counts = Counter([device_of(n) for level in graph.all_graphs() for n in level.nodes if n in kernels])
    able = [d for d in counts if can_record(d)]
    return max(able, key=lambda d: counts[d]) if able else None


def feeds_first(graph: PlanGraph) -> None:
    """Let the step begin with the moves of feeds, so that none of them parts a recording."""
    fed = set(graph.inputs)
    early = [n for n in graph.nodes if n.verb == "move" and n.inputs[0] in fed and not n.control]
    if early:
        chosen = set(early)
        with Rewriter(graph) as change:
            change.arrange([*early, *(n for n in graph.nodes if n not in chosen)])


@lazy_dataclass
class Compilation:
    """Decisions of one compilation so far.

    Attributes:
      recorder: the device that may record parts of a step. (In ``given.capture`` too, once there is one.)
      memory: memory space -> bytes of planned buffers; ``roots``: memory space -> the buffers. ``blocks``: memory space -> bytes to
        take for them, in debug mode with margins around each.
      source: the text of the step, and the statement of each line.
    """

    placed: PlacedGraph
    facts: Liveness | None = None
    given: LoweringInput | None = None
    lowered: Lowered = field(default_factory=Lowered)
    memory: dict[str, int] = field(default_factory=dict)
    blocks: dict[str, int] = field(default_factory=dict)
    roots: dict[str, list[Root]] = field(default_factory=dict)
    source: Source = field(default_factory=Source)


def _liveness(made: Compilation) -> None:
    """Find the device that may record, and how long every value is needed."""
    placed = made.placed
    recorder = None
    if not placed.check_numerics:
        recorder = capturing_device(placed.graph, placed.kernels, placed.device_of)
    if recorder is not None:
        feeds_first(placed.graph)
        if placed.debug:
            from graphdock.contracts.ir_check import check

            check(placed.graph)
    facts = analyse(placed.graph, placed.kernels, placed.handles)
    made.given = LoweringInput(placed, facts, placed.holds, recorder)


def _lower(made: Compilation) -> None:
    """Storage, and the statements of a step."""
    assert made.given is not None
    made.lowered = lower(made.given)


def _memory(made: Compilation) -> None:
    """The places of the planned buffers."""
    spaces, staging = made.placed.spaces, made.lowered.staging
    for root in made.lowered.roots:
        made.roots.setdefault(root.device, []).append(root)
    for space, roots in made.roots.items():
        align = (staging.get(space) or spaces[space]).alignment
        made.memory[space] = made.blocks[space] = pack(roots, align)
        if made.placed.debug and space not in staging:
            from graphdock_executor.canaries import margin_of

            made.blocks[space] = pack(roots, align, margin_of(spaces[space]))


def _print(made: Compilation) -> None:
    """The text of the step."""
    lowered = made.lowered
    made.source = print_step(lowered.block, lowered.feeds, lowered.results)


_STAGES: Mapping[str, Callable[[Compilation], None]] = {
    "liveness": _liveness,
    "lower": _lower,
    "memory": _memory,
    "print": _print,
}


class StraightLine(Executor):
    """Runs a plan as one generated Python function over buffers that exist already."""

    name = "straight_line"

    def refuses(self, placed: PlacedGraph) -> str | None:
        primitive = next((n for g in placed.graph.all_graphs() for n in g.nodes if n.opdef.verb.primitive), None)
        if primitive is not None:
            return f"{primitive.name} ({primitive.op}) may give nothing, or run in a frame"
        if placed.holds:
            return None
        if placed.pieces:
            return "its steps are fed and fetched piece by piece"
        from graphdock_executor.unordered_waits import unordered_waits

        pair = unordered_waits(placed.graph)
        if pair is None:
            return None
        first, second = (node.origin or node.name for node in pair)
        return f"{first} and {second} may wait, and nothing says which comes first"

    def yields(self, placed: PlacedGraph) -> str | None:
        if placed.workers < 2:
            return None
        from graphdock_executor.straight_line.concurrency import pays_to_run_at_once

        return pays_to_run_at_once(placed)

    def compile(self, placed: PlacedGraph) -> StraightLineProgram:
        made = Compilation(placed)
        reports = run_stages(_STAGES, made, placed.debug)
        return StraightLineProgram(placed, made.lowered, made.source, made.memory, made.blocks, made.roots, reports)
