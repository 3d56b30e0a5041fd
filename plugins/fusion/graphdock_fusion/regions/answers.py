"""Answers of region compilers, held to the contract: what breaks it is an error that names the compiler."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphdock.contracts import Claim, NotCompiled, PlanContext, PlanNode, Refusal, Region, RegisteredCompiler
from graphdock.errors import GraphdockError, PluginError

__all__ = ["answer_of", "broken", "cheaper_apart", "chosen_of", "inplace_of", "named"]

#: Microseconds by which a claim may be dearer than its nodes: what a call costs besides is not known better.
_CALL = 10.0


def broken(compiler: RegisteredCompiler, what: str, node: PlanNode, got: str | None = None) -> PluginError:
    """Return the error of a compiler that does what none may do; it names the compiler."""
    return PluginError(
        f"the region compiler {compiler.full_name} (of {compiler.package}) {what}",
        op=node.origin,
        site=node.site,
        got=got,
        hint="fusion = false under [session] does without it",
    )


def named(asked: RegisteredCompiler, doing: str, node: PlanNode, call: Callable[..., Any]) -> Callable[..., Any]:
    """Function like ``call``, whose errors name the compiler; graphdock's own stay what they are, a refusal among them."""

    def called(*args: Any) -> Any:
        try:
            return call(*args)
        except (GraphdockError, MemoryError, NotCompiled):
            raise
        except Exception as error:
            raise broken(asked, f"raises {type(error).__name__} when it {doing}: {error}", node) from error

    return called


def answer_of(asked: RegisteredCompiler, offered: Region, node: PlanNode) -> Claim | Refusal:
    """Answer of the compiler. Raises PluginError where it raises, or says nothing."""
    try:
        answer = asked.compiler.claim(offered)
    except Exception as error:
        raise broken(asked, f"raises {type(error).__name__} when it is offered a region: {error}", node) from error
    if not isinstance(answer, Claim | Refusal):
        raise broken(asked, "answers neither with a Claim nor with a Refusal", node, repr(answer))
    if isinstance(answer, Refusal) and not (isinstance(answer.reason, str) and answer.reason.strip()):
        raise broken(asked, "refuses without a reason, which explain is to show", node, repr(answer))
    return answer


def chosen_of(
    asked: RegisteredCompiler, claim: Claim, offered: Region, node: PlanNode, alone: Callable[[PlanNode], bool]
) -> list[PlanNode]:
    """The plan's nodes that a claim takes. Raises PluginError where they are not the candidate's, or too few."""
    nodes = [n for n in dict.fromkeys(claim.nodes) if n not in offered.parts]
    if strange := [n for n in nodes if n not in offered.source]:
        of_plan = not set(strange).isdisjoint(offered.source.values())
        what = "nodes that are the plan's, not candidate.graph's" if of_plan else "what is no node of candidate.graph"
        raise broken(asked, f"claims {what}", node, repr(claim.nodes))
    chosen = [offered.source[n] for n in nodes if n.verb != "constant"]
    if len(chosen) < 2 and not (chosen and alone(chosen[0])):
        what = "one node that can be no region by itself" if chosen else "no node of the candidate"
        raise broken(asked, f"claims {what}", node, repr(claim.nodes))
    return chosen


def cheaper_apart(
    claim: Claim, nodes: Sequence[PlanNode], asked: RegisteredCompiler, context: PlanContext
) -> str | None:
    """Return why nodes that a compiler claims are left as they are: by themselves they take less, as far as that is known."""
    if not (isinstance(claim.cost_us, int | float) and 0 <= claim.cost_us < math.inf):
        raise broken(
            asked,
            "claims nodes at a cost that is no finite number of microseconds, of 0 and more",
            nodes[0],
            repr(claim.cost_us),
        )
    alone = 0.0
    for seconds in itertools.chain((0.0,), map(context.seconds, nodes)):  # as few as tell
        alone += math.inf if seconds is None else seconds * 1e6
        if alone + _CALL >= claim.cost_us:
            return None
    return f"left as they are: as one they would take {claim.cost_us:.3g} us, by themselves {alone:.3g}"


def inplace_of(asked: RegisteredCompiler, region: Region, node: PlanNode) -> Mapping[str, tuple[str, ...]]:
    """Inputs of a region that its outputs take over. Raises PluginError where the compiler names what there is not, or, of
    a program, memory that an output of it may not take over.
    """
    said = named(asked, "says what is in place", node, asked.compiler.inplace)(region)
    program, names = region.program, _Names(region)
    for name, taken in said.items():
        for each, known in ((name, names.outputs), *((t, names.inputs) for t in taken)):
            if each not in known:
                raise broken(asked, f"names {each!r} in inplace, of a region with {names}", node, repr(said))
        if program is None:
            continue
        out = program.made[names.outputs.index(name)]
        allowed = [f"in{program.inputs[i].source}" for i in out.inplace]
        for each in taken:
            if each not in allowed:
                what = (
                    f"has {name} ({out.name}) take over {each} ({region.graph.inputs[names.inputs.index(each)].name})"
                )
                may = f"RegionOutput.inplace allows {', '.join(allowed) or 'nothing'}"
                raise broken(asked, f"{what} in inplace, of which {may}", node, repr(said))
    return said  # type: ignore[no-any-return]


class _Names:
    """Names of a region's inputs and outputs, as of its op."""

    def __init__(self, region: Region) -> None:
        self.inputs = [f"in{i}" for i in range(len(region.graph.inputs))]
        self.outputs = [f"out{i}" for i in range(len(region.graph.outputs))]

    def __str__(self) -> str:
        return f"inputs {', '.join(self.inputs)} and outputs {', '.join(self.outputs) or 'none'}"
