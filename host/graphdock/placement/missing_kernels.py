"""What a plan missing: every node without a kernel, reported at once and grouped by op."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphdock.contracts.ir import PlanNode
from graphdock.errors import KernelNotFoundError

__all__ = ["MissingKernel", "not_found"]

#: Most nodes of one op that a message names.
_NAMED = 5


@dataclass(frozen=True, slots=True)
class MissingKernel:
    """A node that no kernel fits.

    Attributes:
      what: op, types and where it was looked for: ``MatMul(T=float32) on any device of toy``.
      candidates: one line per kernel that was considered, with the reason why it lost.
      hint: what to do.
    """

    node: PlanNode
    what: str
    candidates: tuple[str, ...]
    hint: str


def not_found(missing: Sequence[MissingKernel]) -> KernelNotFoundError:
    """The error for all of them; ``op`` and ``site`` are the first one's."""
    first = missing[0]
    if len(missing) == 1:
        message = f"no kernel for {first.what}; candidates:" + _listed(first.candidates, 4)
    else:
        groups: dict[str, list[MissingKernel]] = {}
        for each in missing:
            groups.setdefault(each.what, []).append(each)
        message = f"no kernel for {len(missing)} nodes:" + "".join(
            _group(what, found) for what, found in groups.items()
        )
    hints = dict.fromkeys(each.hint for each in missing)
    return KernelNotFoundError(message, op=first.node.name, site=first.node.site, hint="; ".join(hints))


def _group(what: str, missing: Sequence[MissingKernel]) -> str:
    names = ", ".join(each.node.name for each in missing[:_NAMED])
    more = f", and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    candidates = tuple(dict.fromkeys(line for each in missing for line in each.candidates))
    return f"\n  {what}: {names}{more}; candidates:" + _listed(candidates, 4)


def _listed(lines: Sequence[str], indent: int) -> str:
    return "".join(f"\n{' ' * indent}{line}" for line in lines) or " none"
