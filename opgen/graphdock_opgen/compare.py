"""Two states of a package's specs: what changed, and whether programs and stored graphs still mean the same.

Breaking is what can make a program or a GraphDef that was right before fail or give something else: it needs a higher
``version`` of the op. Compatible is what only adds.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from graphdock.errors import InvalidArgumentError, OpSpecError

from graphdock_opgen.library import read_ops
from graphdock_opgen.model import ArgSpec, AttrSpec
from graphdock_opgen.op import Op

__all__ = ["Change", "at_revision", "compare", "of_directory"]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    Attributes:
      versioned: breaking, and announced: the op's version was raised for it, or an op that is gone was deprecated before.
      removed: the op is gone, so it has no version to raise.
    """

    op: str
    breaking: bool
    text: str
    versioned: bool = False
    removed: bool = False

    def __str__(self) -> str:
        kind = "breaking" if self.breaking else "compatible"
        announced = " (was deprecated)" if self.removed else " (new version)"
        return f"{kind:<10}  {self.op}: {self.text}" + (announced if self.versioned else "")


def of_directory(directory: Path) -> dict[str, Op]:
    """The ops that a package's specs declare. Raises OpSpecError at the first fault."""
    errors: list[OpSpecError] = []
    ops = read_ops(sorted((directory / "specs").glob("*.yaml")), errors.append)
    if errors:
        raise errors[0]
    return ops


def at_revision(directory: Path, revision: str) -> dict[str, Op]:
    """The same as a git revision has it.

    Raises:
      InvalidArgumentError: no such revision, or no git repository.
    """

    def git(*args: str) -> str:
        done = subprocess.run(["git", "-C", str(directory), *args], capture_output=True, text=True, check=False)
        if done.returncode:
            said = done.stderr.strip() or f"no revision {revision!r}"
            raise InvalidArgumentError(f"git {args[0]} in {directory} failed: {said}")
        return done.stdout

    git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    names = [n for n in git("ls-tree", "--name-only", revision, "specs/").splitlines() if n.endswith(".yaml")]
    with tempfile.TemporaryDirectory() as scratch:
        specs = Path(scratch) / "specs"
        specs.mkdir()
        for name in names:
            (specs / Path(name).name).write_text(git("show", f"{revision}:./{name}"), encoding="utf-8")
        return of_directory(Path(scratch))


def compare(old: Mapping[str, Op], new: Mapping[str, Op]) -> list[Change]:
    """Every difference that a program could see, by op."""
    out = []
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            out.append(Change(name, True, "removed", old[name].spec.deprecated is not None, removed=True))
        elif name not in old:
            out.append(Change(name, False, "added"))
        else:
            raised = new[name].spec.version > old[name].spec.version
            for breaking, text in _of_op(old[name], new[name]):
                out.append(Change(name, breaking, text, versioned=breaking and raised))
            if new[name].spec.version < old[name].spec.version:
                out.append(
                    Change(name, True, f"version {new[name].spec.version} is lower than {old[name].spec.version}")
                )
    return out


def _of_op(old: Op, new: Op) -> Iterator[tuple[bool, str]]:
    yield from _arguments("input", old.spec.inputs, new.spec.inputs)
    yield from _arguments("output", old.spec.outputs, new.spec.outputs)
    yield from _attributes(old, new)
    yield from _types(old, new)
    yield from _shape_rule(old, new)
    yield from _wrapper(old, new)
    if old.spec.executes != new.spec.executes:
        yield True, f"executes as {new.spec.executes}, was {old.spec.executes}"
    if old.spec.resource != new.spec.resource:
        yield True, f"names a {new.spec.resource}, was {old.spec.resource}"
    for effect in sorted(set(old.spec.effects) ^ set(new.spec.effects)):
        yield True, f"effect {effect} {'added' if effect in new.spec.effects else 'removed'}"
    for trait in sorted(set(old.spec.traits.names()) ^ set(new.spec.traits.names())):
        added = trait in new.spec.traits.names()
        yield trait in ("stateful", "host"), f"trait {trait} {'added' if added else 'removed'}"
    for name, kind in old.kinds.items():
        after = new.kinds.get(name, kind)
        if kind.partition(":")[0] != after.partition(":")[0]:
            yield after == "none", f"gradient of {name} is {after}, was {kind}"


def _arguments(noun: str, old: list[ArgSpec], new: list[ArgSpec]) -> Iterator[tuple[bool, str]]:
    before, after = {a.name: a for a in old}, {a.name: a for a in new}
    for name in before.keys() - after.keys():
        yield True, f"{noun} {name} removed"
    for i, arg in enumerate(new):
        if arg.name not in before:
            last = i >= len(old)
            yield not (noun == "input" and last and arg.arity.kind == "optional"), f"{noun} {arg.name} added"
            continue
        was = before[arg.name]
        for field in ("dtype", "arity", "memory", "access", "resource"):
            if getattr(was, field) != getattr(arg, field):
                yield True, f"{field} of {noun} {arg.name} changed"
    kept = [n for n in before if n in after]
    if kept != [n for n in after if n in before]:
        yield True, f"{noun}s in another order: {', '.join(after)}"


def _attributes(old: Op, new: Op) -> Iterator[tuple[bool, str]]:
    before, after = {a.name: a for a in old.spec.attrs}, {a.name: a for a in new.spec.attrs}
    for name in before.keys() - after.keys():
        yield True, f"attribute {name} removed"
    for name, attr in after.items():
        was = before.get(name)
        if was is None:
            free = not attr.required or name in new.inferred
            yield not free, f"attribute {name} added" + ("" if free else ", without a default")
            continue
        if was.type != attr.type:
            yield True, f"attribute {name} is {attr.type}, was {was.type}"
        if was.required != attr.required:
            yield attr.required, f"attribute {name} {'lost its' if attr.required else 'has a'} default"
        elif was.default != attr.default:
            yield True, f"default of {name} is {attr.default!r}, was {was.default!r}"
        yield from _bounds(was, attr)


def _bounds(was: AttrSpec, now: AttrSpec) -> Iterator[tuple[bool, str]]:
    if was.min != now.min:
        yield (
            now.min is not None and (was.min is None or now.min > was.min),
            f"least {now.name} is {now.min}, was {was.min}",
        )
    if was.max != now.max:
        yield (
            now.max is not None and (was.max is None or now.max < was.max),
            f"largest {now.name} is {now.max}, was {was.max}",
        )
    if was.one_of != now.one_of:
        narrowed = bool(now.one_of) and (not was.one_of or any(v not in now.one_of for v in was.one_of))
        yield narrowed, f"{now.name} may be {now.one_of or 'anything'}, was {was.one_of or 'anything'}"


def _types(old: Op, new: Op) -> Iterator[tuple[bool, str]]:
    for name in old.spec.types.keys() - new.spec.types.keys():
        yield True, f"type variable {name} removed"
    for name, spec in new.spec.types.items():
        if name not in old.spec.types:
            yield False, f"type variable {name} added"
            continue
        lost = sorted(set(old.dtypes_of(name)) - set(new.dtypes_of(name)))
        gained = sorted(set(new.dtypes_of(name)) - set(old.dtypes_of(name)))
        if lost:
            yield True, f"{name} may no longer be {', '.join(lost)}"
        if gained:
            yield False, f"{name} may also be {', '.join(gained)}"
        if old.spec.types[name].default != spec.default:
            yield True, f"default of {name} is {spec.default}, was {old.spec.types[name].default}"
        if old.spec.types[name].list_ != spec.list_:
            yield True, f"{name} is {'a list' if spec.list_ else 'one dtype'} now"


def _shape_rule(old: Op, new: Op) -> Iterator[tuple[bool, str]]:
    def rule(op: Op) -> object:
        shapes = [a.shape for a in (*op.spec.inputs, *op.spec.outputs)]
        return shapes, op.spec.dims.let, [w.check for w in op.spec.dims.where], op.spec.shape_fn

    if rule(old) != rule(new):
        yield True, "the shape rule changed"


def _wrapper(old: Op, new: Op) -> Iterator[tuple[bool, str]]:
    before, after = [e.name for e in old.spec.api.endpoints], [e.name for e in new.spec.api.endpoints]
    for name in before:
        if name not in after:
            yield True, f"endpoint {name} removed"
    for name in after:
        if name not in before:
            yield False, f"endpoint {name} added"
    for operator in old.spec.api.operator:
        if operator not in new.spec.api.operator:
            yield True, f"operator {operator} removed"
    was, now = _positional(old), _positional(new)
    if now[: len(was)] != was and set(was) <= set(now):
        yield True, f"the wrapper's arguments are in another order: {', '.join(now)}"
    renamed = [(p.name, q.name) for p in old.params for q in new.params if p.of == q.of and p.name != q.name]
    for a, b in renamed:
        yield True, f"the wrapper calls {a} now {b}"
    if old.spec.api.returns != new.spec.api.returns:
        yield (
            True,
            f"the wrapper returns {new.spec.api.returns or 'all outputs'}, was {old.spec.api.returns or 'all outputs'}",
        )


def _positional(op: Op) -> list[str]:
    """The wrapper's parameters as callers may give them by position; ``name`` counts where others stand behind it."""
    found = [p.name for p in op.params]
    return found[:-1] if found[-1] == "name" else found
