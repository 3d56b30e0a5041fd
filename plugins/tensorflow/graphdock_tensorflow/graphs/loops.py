"""TensorFlow's loops of frames (``Enter``, ``Merge``, ``Switch``, ``NextIteration``, ``Exit``) become While nodes.

A loop variable is a ``Merge`` of an ``Enter`` and a ``NextIteration``; what its ``Switch`` gives at 1 enters the body, at
0 it leaves by an ``Exit``.
A constant ``Enter`` is a capture. A loop variable that needs an op which is not here, such as the stacks that TensorFlow keeps for
gradients, is left out where neither the condition nor another one needs it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from graphdock.errors import InvalidArgumentError

from graphdock_tensorflow.graphs.bodies import take_out
from graphdock_tensorflow.graphs.branches import make_branches
from graphdock_tensorflow.graphs.nodes import Level, Node, op_of
from graphdock_tensorflow.graphs.values import dims_of

__all__ = ["NOT_A_LOOP", "make_loops"]

NOT_A_LOOP = "no loop of tf.while_loop"
#: Deepest nesting of loops; deeper bodies no reader takes.
_DEEPEST = 64
Readers = dict[str, list[str]]


@dataclass(slots=True)
class _Variable:
    """A loop variable: its nodes by name."""

    enter: str
    merge: str
    again: str
    switch: str = ""
    exits: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Frame:
    """A loop. ``members``: all nodes that run in it, its Exits too."""

    name: str
    enters: list[str]
    members: set[str]
    variables: list[_Variable] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    test: str = ""


def make_loops(level: Level) -> None:
    """Replace the loops of a level. A loop that can't be imported says why at its Exits.

    Raises:
      InvalidArgumentError: loops are nested deeper than graphs may be, or are never left.
    """
    frames = _frames(level)
    if not frames:
        return
    readers = level.readers()
    exits = {frame.name: _exits(level, frame, readers) for frame in frames}
    left = _DEEPEST * (len(level) + 1)
    for frame in frames:
        frame.members = level.ahead(frame.enters, exits[frame.name], readers)
        left -= len(frame.members)
        if left < 0:
            raise InvalidArgumentError(
                f"GraphDef: loops are nested deeper than {_DEEPEST}, or never left", op=frame.name
            )
    for frame in sorted(frames, key=lambda f: len(f.members)):  # an inner one is smaller
        frame.members = level.ahead(frame.enters, exits[frame.name], readers)
        why = _understand(level, frame)
        if not why:
            why = _replace(level, frame, readers)
        if why:
            level.lost.append(("While", why, frame.name))
            level.drop(frame.members)


def _frames(level: Level) -> list[_Frame]:
    names: dict[str, list[str]] = {}
    for node in level.values():
        if node.op == "Enter" and node.raw is not None:
            names.setdefault(node.raw.attr["frame_name"].s.decode("utf-8", "replace"), []).append(node.name)
    return [_Frame(name, enters, set()) for name, enters in names.items()]


def _exits(level: Level, frame: _Frame, readers: Readers) -> list[str]:
    """The Exits of a frame: those behind a Switch of one of its own Merges."""
    merges = {n for e in frame.enters for n in readers.get(e, ()) if level[n].op == "Merge"}
    switches = {n for m in merges for n in readers.get(m, ()) if level[n].op == "Switch" and _first(level, n) == m}
    return [n for s in switches for n in readers.get(s, ()) if level[n].op == "Exit" and _first(level, n) == s]


def _first(level: Level, name: str) -> str:
    return op_of(level[name].inputs[0])


def _understand(level: Level, frame: _Frame) -> str:
    """Find the parts of a loop; returns why it is none."""
    inside = [level[n] for n in level.ordered(frame.members)]
    enters = set(frame.enters)
    merged: set[str] = set()
    for node in inside:
        if node.op == "Merge" and len(node.inputs) == 2 and op_of(node.inputs[0]) in enters:
            again = level.get(op_of(node.inputs[1]))
            if again is None or again.op != "NextIteration":
                return NOT_A_LOOP
            frame.variables.append(_Variable(op_of(node.inputs[0]), node.name, again.name))
            merged.add(op_of(node.inputs[0]))
    by_merge = {v.merge: v for v in frame.variables}
    tests = set()
    for node in inside:
        if node.op == "Switch" and op_of(node.inputs[0]) in by_merge:
            by_merge[op_of(node.inputs[0])].switch = node.name
            tests.add(op_of(node.inputs[1]))
    if len(tests) != 1 or (next(iter(tests)) not in level) or any(not v.switch for v in frame.variables):
        return NOT_A_LOOP
    frame.test = tests.pop()
    if level[frame.test].op != "LoopCond":
        return NOT_A_LOOP
    by_switch = {f"{v.switch}:0": v for v in frame.variables}
    for node in inside:
        if node.op == "Exit" and node.inputs[0] in by_switch:
            by_switch[node.inputs[0]].exits.append(node.name)
        elif node.op == "Exit":  # it leaves from within the body
            return NOT_A_LOOP
    frame.constants = [e for e in frame.enters if e not in merged]
    return ""


def _kept(level: Level, frame: _Frame, readers: Readers) -> tuple[list[_Variable], str]:
    """The loop variables that stay, and why there is no loop: an op that its condition, or all that leaves it, needs."""
    spoiled: dict[str, str] = {}
    found = [level[n] for n in level.ordered(frame.members) if level[n].why]
    waiting = [(n.name, n.wrote if n.why == "op" else n.why) for n in reversed(found)]
    while waiting:
        name, why = waiting.pop()
        if name in frame.members and name not in spoiled:
            spoiled[name] = why
            waiting.extend((reader, why) for reader in readers.get(name, ()))
    if frame.test in spoiled:
        return [], f"its condition needs {spoiled[frame.test]}"
    kept = [v for v in frame.variables if v.merge not in spoiled]
    for variable in frame.variables:
        for name in variable.exits if variable.merge in spoiled else ():
            level[name].why = f"needs {spoiled[variable.merge]}"
    return kept, "" if kept else f"needs {next(iter(spoiled.values()), 'nothing')}"


def _replace(level: Level, frame: _Frame, readers: Readers) -> str:
    ends = {n for v in frame.variables for n in (v.merge, v.switch)} | set(frame.constants)
    variables, why = _kept(level, frame, readers)
    if why:
        return why
    labels = {v.merge: v.merge.rpartition("/")[2] for v in variables}
    roots = [op_of(level[frame.test].inputs[0])]
    for variable in variables:
        again = level[variable.again]
        roots += [op_of(again.inputs[0]), *again.controls]
    read = level.behind(roots, ends)
    frame.constants = [e for e in frame.constants if e in read]
    entered = {f"{e}:0": e.rpartition("/")[2] for e in frame.constants}
    base = frame.name.rpartition("/")[2] or "while"
    outputs = [level[v.again].inputs[0] for v in variables]
    targets = [c for v in variables for c in level[v.again].controls]
    # both may read what enters an iteration at its Merge, the body at its Switch as well
    test = take_out(
        level,
        f"{base}/cond",
        [level[frame.test].inputs[0]],
        [],
        {f"{v.merge}:0": labels[v.merge] for v in variables} | entered,
        ends,
    )
    entering = {f"{v.merge}:0": f"{v.switch}:1" for v in variables}
    given = {f"{v.switch}:1": labels[v.merge] for v in variables} | entered
    step = take_out(level, f"{base}/body", [entering.get(t, t) for t in outputs], targets, given, ends)
    arguments = dict(zip(given, step.arguments, strict=True))
    step.level.replace_inputs({m: arguments[s] for m, s in entering.items()})
    for body in (test, step):
        make_branches(body.level)
        why = body.why()
        if why:
            return why
    invariants = [[] if level.dtype(v.merge + ":0") == "variant" else _invariant(level[v.merge]) for v in variables]
    for body in (test, step):
        for tensor, dims in zip(body.arguments, invariants, strict=False):
            body.level[op_of(tensor)].attrs["shape"] = {"shape": dims}
    inputs = [level[v.enter].inputs[0] for v in variables] + [level[e].inputs[0] for e in frame.constants]
    dtypes = [level.dtype(t) or "float32" for t in inputs]
    loop = Node(level.fresh(frame.name), "While", inputs, wrote="While")
    loop.controls = list(dict.fromkeys(c for e in frame.enters for c in level[e].controls))
    loop.attrs = {
        "Tin": {"list(type)": dtypes},
        "Tout": {"list(type)": dtypes[: len(variables)]},
        "cond": test.data(len(variables)),
        "body": step.data(len(variables)),
        "output_shapes": {"list(shape)": invariants},
    }
    limit = level[variables[0].enter].raw.attr["parallel_iterations"].i
    loop.attrs["parallel_iterations"] = {"int": max(int(limit), 1)}
    level.put(loop)
    for i, variable in enumerate(variables):
        for name in variable.exits:
            leaving = level[name]
            leaving.op, leaving.inputs, leaving.raw = "Identity", [f"{loop.name}:{i}"], None
            leaving.attrs = {"T": {"type": dtypes[i]}}
    stay = {n for v in frame.variables for n in v.exits}
    gone = [n for n in frame.members if n in level and n not in stay and n != loop.name]
    for name in level.before(loop):
        readers.setdefault(name, []).append(loop.name)
    readers[loop.name] = [name for name in stay if level[name].inputs[0].startswith(f"{loop.name}:")]
    outside = _within(frame.members, stay, readers)
    for name in gone:
        if name not in outside:
            del level[name]
    return ""


def _within(members: set[str], names: set[str], readers: Readers) -> set[str]:
    """Those members that need the names, by way of members."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in members and name not in found:
            found.add(name)
            waiting.extend(readers.get(name, ()))
    return found


def _invariant(merge: Node) -> list[int | None] | None:
    """The shape that a loop variable has in all iterations, where the file says it."""
    if "_output_shapes" in merge.raw.attr and merge.raw.attr["_output_shapes"].list.shape:
        return dims_of(merge.raw.attr["_output_shapes"].list.shape[0], f"node {merge.name!r}")
    return None
