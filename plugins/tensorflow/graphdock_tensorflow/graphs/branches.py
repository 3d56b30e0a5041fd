"""TensorFlow's ``Switch`` and ``Merge`` become Cond nodes, inner ones first.

A ``Merge`` gives what one of two branches made. Behind each of its inputs stand the nodes of that branch, back to the
Switches that let them run:
at their output 1 where the predicate holds, at 0 where it does not. All Merges of one predicate that do not depend on one another
become one Cond, so that nothing in a branch runs twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from graphdock_tensorflow.graphs.bodies import take_out
from graphdock_tensorflow.graphs.nodes import Level, Node, op_of

__all__ = ["NOT_A_COND", "make_branches"]

NOT_A_COND = "no branch of tf.cond"


@dataclass(slots=True)
class _Side:
    """Nodes behind one input of a Merge, and the Switches that they begin at."""

    nodes: set[str]
    switches: list[str]


@dataclass(slots=True)
class _Choice:
    """A Merge: its two sides, the one where the predicate is false first, and which of its inputs each is; ``second``: the place of
    the other's input among them.
    """

    merge: str
    sides: tuple[_Side, _Side]
    inputs: tuple[str, str]
    second: int = 1


def make_branches(level: Level) -> None:
    """Replace the Switches and Merges of a level. What can't be imported says why."""
    switches = {n.name for n in level.values() if n.op == "Switch" and not n.why}
    waiting = [n.name for n in level.values() if n.op == "Merge" and not n.why]
    taken: dict[str, str] = {}
    asked = {t for n in level.values() for t in n.inputs if t.endswith(":1")}
    while waiting:
        found: dict[str, list[_Choice]] = {}
        others = set(waiting)
        ready = [n for n in waiting if not level.behind(map(op_of, level[n].inputs), switches) & (others - {n})]
        for name in ready:
            pred, choice = _understand(level, level[name], switches)
            if choice is None:
                level[name].why = NOT_A_COND
            else:
                found.setdefault(pred, []).append(choice)
        if not ready:
            for name in waiting:
                level[name].why = NOT_A_COND
            break
        done = {c.merge for choices in found.values() for c in choices}
        indices: dict[str, str] = {}
        for pred, choices in found.items():
            for group in _independent(level, choices):
                if _replace(level, pred, group, taken):
                    indices |= {f"{c.merge}:1": _value_index(level, c, pred) for c in group if f"{c.merge}:1" in asked}
        level.replace_inputs(indices)
        waiting = [n for n in waiting if n not in done and not level[n].why]
    _clean(level, switches, taken)


def _root(level: Level, tensor: str) -> str:
    """The tensor that a chain of Identities begins with."""
    seen: set[str] = set()
    while tensor not in seen:
        seen.add(tensor)
        node = level.get(op_of(tensor))
        if node is None or node.op != "Identity":
            break
        tensor = node.inputs[0]
    return tensor


def _understand(level: Level, merge: Node, switches: set[str]) -> tuple[str, _Choice | None]:
    """The predicate of a Merge, and its sides; None where it is not of a cond."""
    if len(merge.inputs) != 2:
        return "", None
    sides: dict[int, tuple[_Side, str]] = {}
    preds: set[str] = set()
    for tensor in merge.inputs:
        nodes = level.behind([op_of(tensor)], switches)
        ports: set[int] = set()
        for name in nodes - switches:
            ports.update(int(t.rpartition(":")[2]) for t in level[name].inputs if op_of(t) in switches)
        if op_of(tensor) in switches:
            ports.add(int(tensor.rpartition(":")[2]))
        ends = level.ordered(nodes & switches)
        preds.update(_root(level, level[s].inputs[1]) for s in ends)
        if len(ports) != 1:
            return "", None
        sides[ports.pop()] = (_Side(nodes - switches, ends), tensor)
    if set(sides) != {0, 1} or len(preds) != 1:
        return "", None
    return preds.pop(), _Choice(merge.name, (sides[0][0], sides[1][0]), (sides[0][1], sides[1][1]))


def _independent(level: Level, choices: list[_Choice]) -> list[list[_Choice]]:
    """Groups of Merges of which none needs another one of its group."""
    if len(choices) < 2:
        return [choices]
    groups: list[list[_Choice]] = []
    behind = {c.merge: level.behind(list(level.before(level[c.merge]))) for c in choices}
    for choice in sorted(choices, key=lambda c: len(behind[c.merge])):
        for group in groups:
            if not any(other.merge in behind[choice.merge] for other in group):
                group.append(choice)
                break
        else:
            groups.append([choice])
    return groups


def _replace(level: Level, pred: str, group: list[_Choice], taken: dict[str, str]) -> bool:
    """Make a group one Cond; whether it could be."""
    ends = list(dict.fromkeys(s for c in group for side in c.sides for s in side.switches))
    name = level.fresh(f"{group[0].merge}/cond")
    bodies = []
    for which, label in ((1, "then"), (0, "else")):
        given = {f"{s}:{which}": s.rpartition("/")[2] for s in ends}
        outputs = [c.inputs[which] for c in group]
        bodies.append(take_out(level, f"{name.rpartition('/')[2]}/{label}", outputs, [], given, ends))
    why = bodies[0].why() or bodies[1].why()
    again = next((n for b in bodies for n in b.level if n in taken and _acts(level, n)), None)
    if not why and again is not None:
        why = f"{level[again].wrote} in it would run twice"
    if why:
        for choice in group:
            level[choice.merge].why = why
        return False
    taken.update((n, name) for b in bodies for n in b.level if n in level)
    inputs = [pred, *[level[s].inputs[0] for s in ends]]
    dtypes = [level.dtype(t) or "float32" for t in inputs[1:]]
    results = [level.dtype(f"{c.merge}:0") or "float32" for c in group]
    node = Node(name, "Cond", inputs, wrote="Merge")
    node.controls = list(dict.fromkeys(c for s in ends for c in level[s].controls))
    node.attrs = {"Tin": {"list(type)": dtypes}, "Tout": {"list(type)": results}}
    node.attrs |= {"then_branch": bodies[0].data(), "else_branch": bodies[1].data()}
    level.put(node)
    for i, choice in enumerate(group):
        merge = level[choice.merge]
        choice.second = merge.inputs.index(choice.inputs[1])
        merge.op, merge.inputs, merge.attrs, merge.raw = "Identity", [f"{name}:{i}"], {"T": {"type": results[i]}}, None
        merge.controls = []
    return True


def _acts(level: Level, name: str) -> bool:
    node = level[name]
    return (
        node.raw is None
        and node.op in level.ops
        and level.ops.get(node.op).is_stateful
        and node.op not in ("Placeholder", "NoOp")
    )


def _value_index(level: Level, choice: _Choice, pred: str) -> str:
    """The tensor that says which input came."""
    if not choice.second:
        pred = level.put(Node(level.fresh(f"{choice.merge}/not"), "LogicalNot", [pred], wrote="Merge"))
    attrs = {"SrcT": {"type": "bool"}, "DstT": {"type": "int32"}}
    cast = Node(level.fresh(f"{choice.merge}/value_index"), "Cast", [pred], attrs=attrs, wrote="Merge")
    return level.put(cast)


def _clean(level: Level, switches: set[str], taken: dict[str, str]) -> None:
    """Remove what went into bodies, and what stands behind a Switch and went into none."""
    for name in level.ahead(switches):
        if name in taken or name in switches:
            level.pop(name, None)
    # the rest reads what is in a body now: what a cond begins with, and parts of a branch that none of its results needs
    level.drop([n.name for n in level.values() if not n.why and any(op_of(t) in switches for t in n.inputs)])
