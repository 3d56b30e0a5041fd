"""The passes of the phase ``simplify``, the host's own and those of plugins, and how they are run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphdock.contracts.ir import PlanGraph, PlanNode
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.opdef import resolve
from graphdock.contracts.passes import PHASES, Pass, PassContext
from graphdock.dtypes import DType
from graphdock.errors import ConfigError, GraphdockError, PlanError, PluginError
from graphdock.passes.dead_code import eliminate_dead_code, prune
from graphdock.passes.simplify import algebra, captures, cse, fold, identities, known_integers, powers
from graphdock.plugin.host import Host, default_host
from graphdock.plugin.registry import RegisteredPass
from graphdock.shape import Dims, compatible, show

if TYPE_CHECKING:
    from graphdock.passes.history import PassHistory

__all__ = ["PassReport", "Promise", "apply_pass", "checked_switches", "known_passes", "run_passes", "simplifications"]

#: The host's own; those of plugins stand between them by their order.
_OWN = (
    Pass("captures", "simplify", 10, "moves constants into the bodies that capture them", captures),
    Pass("identities", "simplify", 30, "forwards what changes nothing", identities),
    Pass("shapes", "simplify", 40, "makes constants of integers that are known from shapes", known_integers),
    Pass("cse", "simplify", 50, "merges nodes that compute the same, and reads with no write between them", cse),
    Pass("fold", "simplify", 60, "computes what depends on constants only", fold),
    Pass("algebra", "simplify", 70, "drops multiplications by one", algebra),
    Pass("powers", "simplify", 80, "makes other ops of one with a constant, where its op says which", powers),
)


@lazy_dataclass(frozen=True, slots=True)
class PassReport:
    """Report of one pass: nodes before and after (bodies included), and the time in milliseconds."""

    name: str
    before: int
    after: int
    ms: float


def known_passes(host: Host) -> Mapping[str, RegisteredPass]:
    """Name -> pass, the host's own and those of every allowed plugin, in the order of running.

    Raises:
      PluginError: a plugin brings a pass under the name of one of the host's own.
    """
    own = [RegisteredPass("host", "graphdock", True, each) for each in _OWN]
    brought = host.load_passes()
    names = {row.each.name for row in own}
    for row in brought:
        if row.each.name in names:
            raise PluginError(
                f"plugin {row.plugin!r} brings a pass {row.each.name!r}, which is the name of graphdock's own"
            )
    phases = list(PHASES)
    rows = sorted([*own, *brought], key=lambda r: (phases.index(r.each.phase), r.each.order, r.plugin, r.each.name))
    return {row.each.name: row for row in rows}


def simplifications(host: Host | None = None) -> Mapping[str, Pass]:
    """Name -> pass of the phase ``simplify``, in the order of running; of the process's own host where none is named."""
    known = known_passes(host or default_host())
    return {name: row.each for name, row in known.items() if row.each.phase == "simplify"}


def checked_switches(switches: Mapping[str, bool], known: Mapping[str, RegisteredPass]) -> dict[str, bool]:
    """Name of every known pass -> whether it runs; one that ``switches`` does not name runs if it does by default.

    Raises:
      ConfigError: a switch of a pass that does not exist.
    """
    for name in switches:
        if name not in known:
            raise ConfigError.unknown(f"no pass named {name!r}", name, known)
    return {name: switches.get(name, row.each.on) for name, row in known.items()}


def run_passes(
    graph: PlanGraph,
    passes: Sequence[RegisteredPass],
    context: Callable[[RegisteredPass], PassContext],
    verify: bool = False,
    history: PassHistory | None = None,
    exact: bool = False,
) -> list[PassReport]:
    """Drop what nobody needs, then run every pass over the graph and all its bodies.

    Args:
      passes: of the phase ``simplify``, those that are on. ``context``: what each of them gets.
      verify: check grammar and order after the host's own passes too. ``history``: what keeps which nodes each pass changed.
      exact: there is nothing that nobody needs.
    """
    if history is not None:
        history.see(graph)
    if verify or not exact:
        eliminate_dead_code(graph)
    if history is not None:
        history.note("pruning", graph)
    if verify:
        from graphdock.contracts.ir_check import check_order

        check_order(graph, "pruning")
    reports = []
    after = _count(graph)
    dirty: set[PlanGraph] = set()  # levels that may hold what nobody needs: it lies before the host's own passes
    for number, row in enumerate(passes):
        start, before = time.perf_counter(), after
        promise = None if row.own else Promise.of(graph)
        lies = not verify and row.own and number + 1 < len(passes) and passes[number + 1].plugin == "host"
        # as they are now: a pass that makes bodies within bodies comes to an end
        for level in list(graph.all_graphs()):
            nodes = level.nodes
            apply_pass(row, level, [level], context(row))
            if level.nodes is not nodes:  # a Rewriter that changes anything leaves another list
                dirty.add(level)
            if level in dirty and not lies:
                prune(level)
                dirty.discard(level)
        took = (time.perf_counter() - start) * 1e3
        if verify or not row.own:
            check_after(row, graph, promise)
        if history is not None:
            history.note(row.each.name, graph)
        after = _count(graph)
        reports.append(PassReport(row.each.name, before, after, took))
    return reports


def apply_pass(row: RegisteredPass, graph: PlanGraph, levels: Iterable[PlanGraph], context: PassContext) -> Any:
    """Run a pass over a graph, if one of these levels of it holds a node that it wants; what it returns.

    Raises:
      PluginError: a third party's pass raised an error that is none of graphdock's, broke the graph while it changed it, or
        returned something though its phase is not ``translate``.
    """
    wants = row.each.wants
    try:
        if wants is not None and not any(any(map(wants, level.nodes)) for level in levels):
            return None
        run = resolve(row.each.run) if isinstance(row.each.run, str) else row.each.run
        result = run(graph, context)
    except GraphdockError as error:
        if row.own:
            raise
        if isinstance(error, PlanError):
            raise _broke(row, error) from error
        error.add_note(f"raised by the pass {row.each.name} of plugin {row.plugin}")
        raise
    except Exception as error:
        if row.own:
            raise
        raise broken(row, f"failed: {type(error).__name__}: {error}") from error
    if result is not None and row.each.phase != "translate" and not row.own:
        raise broken(row, f"returned {result!r:.200}: it is to change the graph that it is given, and to return None")
    return result


@lazy_dataclass(frozen=True, slots=True)
class Promise:
    """Outputs of a plan, and what it does, whatever passes make of it.

    Attributes:
      outputs: dtype and shape of each. acts: origins of the targets that do something although nobody reads them.
    """

    outputs: tuple[tuple[DType, Dims], ...]
    acts: Mapping[str, PlanNode]

    @classmethod
    def of(cls, graph: PlanGraph) -> Promise:
        acts = {origin: node for node in graph.targets if node.opdef.is_active for origin in node.origins}
        return cls(tuple([(v.dtype, v.shape) for v in graph.outputs]), acts)

    def broken_by(self, graph: PlanGraph) -> str | None:
        """Text about what a graph does not give or do any more; None where it keeps all."""
        outputs, texts = [(v.dtype, v.shape) for v in graph.outputs], []
        for number, (dtype, shape) in enumerate(self.outputs[: len(outputs)]):
            got, dims = outputs[number]
            if got is not dtype or not compatible(dims, shape):
                texts.append(f"output {number} is {got.name} {show(dims)} in place of {dtype.name} {show(shape)}")
        if len(outputs) != len(self.outputs):
            texts.append(f"it has {len(outputs)} outputs in place of {len(self.outputs)}")
        there = {origin for node in graph.nodes for origin in node.origins}
        texts += [
            f"{node.name} ({node.op}), which the step is to run, is gone"
            for o, node in self.acts.items()
            if o not in there
        ]
        return "; ".join(texts) or None


def check_after(row: RegisteredPass, graph: PlanGraph, promise: Promise | None = None) -> None:
    """Check grammar and order of a graph that a pass has changed, perhaps; after a third party's, attributes, dtypes and what the
    plan promised, too.

    Raises:
      PlanError: one of the host's own broke it. PluginError: a third party's did; names pass and node.
    """
    from graphdock.contracts.ir_check import check, check_order, check_signatures

    try:
        check(graph)
        if not row.own:
            check_signatures(graph)
        check_order(graph, f"the pass {row.each.name}")
        lost = None if promise is None else promise.broken_by(graph)
        if lost is not None:
            raise PlanError(f"graph {graph.name}: {lost}")
    except PlanError as error:
        if row.own:
            raise
        raise _broke(row, error) from error


def _broke(row: RegisteredPass, error: PlanError) -> PluginError:
    return broken(row, f"broke the plan: {error.message}", error)


def broken(row: RegisteredPass, what: str, at: GraphdockError | None = None) -> PluginError:
    """The error of a pass, which it names, with its plugin."""
    return PluginError(
        f"the pass {row.each.name!r} (of plugin {row.plugin!r}, {row.package}) {what}",
        expected=None if at is None else at.expected,
        got=None if at is None else at.got,
        op=None if at is None else at.op,
        site=None if at is None else at.site,
        hint=f"passes = {{{row.each.name} = false}} under [session] does without it",
    )


def _count(graph: PlanGraph) -> int:
    return sum(len(g.nodes) for g in graph.all_graphs())
