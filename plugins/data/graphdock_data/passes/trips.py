"""Trip counts: how many iterations a loop has at most, as far as a plan knows before it runs, and the indices they go through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from graphdock.contracts import PlanNode, Value, dtypes
from graphdock.contracts.bodies import carried, elements
from graphdock.shape import Symbol

from graphdock_data.passes.affine import Affine, Scopes

__all__ = ["Indices", "NotKnown", "Trips", "indices_of", "lengths_of", "trips_of"]


class NotKnown(Exception):
    """Raised where something that has to be known before a loop runs is not; the argument is the reason."""


@dataclass(frozen=True)
class Trips:
    """Iterations of a loop.

    Attributes:
      counters: loop variable within the body that each iteration changes by one -> what it is, of ``iteration``. ``numbers``: which
        loop variable it is.
      most: how many iterations there are at most; a loop has none where that is negative.
      exact: whether it has so many.
      done: how many it had, of its results.
    """

    loop: PlanNode
    iteration: Symbol
    counters: dict[Value, Affine] = field(repr=False)
    numbers: dict[Value, int] = field(repr=False)
    most: Affine
    exact: bool
    done: Affine


@dataclass(frozen=True, slots=True)
class Indices:
    """Indices that a loop goes through, one an iteration, each next to the one before.

    Attributes:
      first: that of the first iteration of ``trips``. ``step``: 1 or -1.
      backwards: whether the loop goes through them from that of the last iteration to that of the first.
    """

    trips: Trips
    first: Affine
    step: int
    backwards: bool

    @property
    def falling(self) -> bool:
        """Property that each is less than the one before."""
        return (self.step < 0) is not self.backwards

    def low(self, count: Affine) -> Affine:
        """The least of so many."""
        return self.first if self.step > 0 else self.first.minus(count).add(1)

    def end(self, count: Affine) -> Affine:
        """Index behind the largest of so many."""
        return self.first.plus(count) if self.step > 0 else self.first.add(1)

    def within(self, low: Affine, end: Affine | None, scopes: Scopes) -> bool:
        """Return whether all are proven to lie from ``low`` to before ``end``; None for no end."""
        return any(
            scopes.at_least_zero(self.low(count).minus(low))
            and (end is None or scopes.at_least_zero(end.minus(self.end(count))))
            for count in (self.trips.most, self.trips.done)
        )


def trips_of(loop: PlanNode, scopes: Scopes) -> Trips:
    """Iterations of a loop that counts them itself.

    Raises:
      NotKnown: it has no counter, or its condition does not say how far that goes.
    """
    condition, body = loop.bodies
    count = carried(loop.opdef, loop.attrs)
    iteration = Symbol(False)
    found: dict[Value, tuple[int, Affine, int]] = {}  # input of the body -> its number, its first value, its step
    for number in range(count):
        inner = body.inputs[number]
        if inner.dtype is dtypes.int32 and inner.shape == ():
            rest = scopes.affine(body.outputs[number]).minus(Affine(((inner, 1),)))
            if rest.known in (1, -1):
                found[inner] = number, scopes.affine(loop.inputs[number]), rest.number
    if not found:
        raise NotKnown("no int32 loop variable counts its iterations, one by one")
    limit = loop.attrs["maximum_iterations"]
    ends = list(_ends(condition.outputs[0]))
    compared = all(_compared(condition.outputs[0]))
    for number, first, step in found.values():
        last = Affine(((loop.outputs[number], 1),))
        done = last.minus(first).times(step)
        numbers = {v: n for v, (n, _, _) in found.items()}
        counters = {v: f.plus(Affine(((iteration, 1),)), s) for v, (_, f, s) in found.items()}
        counts = [_most(loop, scopes, end, number, first, step) for end in ends]
        known = [count for count in counts if count is not None]
        if known:
            most = known[0]
            if not (first if step > 0 else first.minus(most).add(1)).at_least_zero():
                raise NotKnown("whether its counter is negative is not known")
            exact = compared and known == [most] * len(counts)
            exact = exact and (limit < 0 or most.known is not None and most.known <= limit)
            exact = exact and all(c is not None and c.minus(most).at_least_zero() for c in lengths_of(loop, scopes))
            if limit >= 0 and most.known is not None:
                most = Affine((), min(limit, most.known))
            return Trips(loop, iteration, counters, numbers, most, exact, done)
        if limit >= 0 and step > 0 and first.at_least_zero():
            return Trips(loop, iteration, counters, numbers, Affine((), limit), False, done)
    raise NotKnown("its condition does not say how far a counter goes")


def lengths_of(loop: PlanNode, scopes: Scopes) -> Iterator[Affine | None]:
    """Length of each history that a loop reads; None where that is not known."""
    for history, _ in elements(loop):
        node = scopes.outermost(history).node
        rows = node is not None and "unstacks" in node.opdef.traits
        yield scopes.affine(node.inputs[1]) if rows and node is not None else None


def _most(
    loop: PlanNode, scopes: Scopes, end: tuple[Value, Value, int], number: int, first: Affine, step: int
) -> Affine | None:
    """The number of iterations after which a comparison ends a loop; None where its counter does not tell."""
    less, more, besides = end
    form = scopes.affine(more).minus(scopes.affine(less)).add(besides)  # the loop goes on while it is positive
    for other, value in enumerate(loop.bodies[0].inputs[: carried(loop.opdef, loop.attrs)]):
        if other != number and dict(form.terms).get(value) == -step:  # another counter, which goes the same way
            before = scopes.affine(loop.inputs[other])
            after = scopes.affine(loop.bodies[1].outputs[other]).minus(Affine(((loop.bodies[1].inputs[other], 1),)))
            if after.known == step > 0 and before.at_least_zero():
                form = form.plus(Affine(((value, 1),)), step).plus(before, -step)
                return None if _within(form, loop) else form
    rest = form.plus(Affine(((loop.bodies[0].inputs[number], step),)))
    return None if _within(rest, loop) else rest.plus(first, -step)


def _compared(test: Value) -> Iterator[bool]:
    """Whether each part of a condition is a comparison."""
    node = test.node
    if node is not None and node.op == "LogicalAnd" and all(v.shape == () for v in node.inputs):
        for value in node.inputs:
            yield from _compared(value)
    else:
        yield node is not None and node.op in _COMPARE and test.shape == () and node.inputs[0].dtype is dtypes.int32


#: op that compares -> which input is the less one, and how far it may go beyond the other
_COMPARE = {"Less": (0, 0), "LessEqual": (0, 1), "Greater": (1, 0), "GreaterEqual": (1, 1)}


def _ends(test: Value) -> Iterator[tuple[Value, Value, int]]:
    """The comparisons of which each ends a loop where it does not hold."""
    node = test.node
    if node is None:
        return
    if node.op == "LogicalAnd" and all(v.shape == () for v in node.inputs):
        for value in node.inputs:
            yield from _ends(value)
    elif node.op in _COMPARE and all(v.dtype is dtypes.int32 and v.shape == () for v in node.inputs):
        less, besides = _COMPARE[node.op]
        yield node.inputs[less], node.inputs[1 - less], besides


def _within(form: Affine, loop: PlanNode) -> bool:
    """Return whether a sum is of what iterations make."""
    inner = {v for body in loop.bodies for v in (*body.inputs, *(o for n in body.nodes for o in n.outputs))}
    return any(base in inner for base, _ in form.terms)


def indices_of(index: Value, loop: PlanNode, scopes: Scopes, known: dict[PlanNode, Trips]) -> Indices:
    """The indices that a value of a loop's body is, an iteration each. ``known``: trips of loops, found on the way.

    Raises:
      NotKnown: it is none that goes up or down by one, as far as the plan knows.
    """
    if scopes.history_of(index) is not None:
        return _of_history(index, loop, scopes, known)
    if loop not in known:
        known[loop] = trips_of(loop, scopes)
    trips = known[loop]
    form = scopes.affine(index, trips.counters)
    step = dict(form.terms).get(trips.iteration, 0)
    first = form.minus(Affine(((trips.iteration, step),)))
    if _within(first, loop) or step not in (1, -1):
        raise NotKnown("the index is not the loop's counter, plus or minus what is known before the loop")
    return Indices(trips, first, step, False)


def _of_history(element: Value, loop: PlanNode, scopes: Scopes, known: dict[PlanNode, Trips]) -> Indices:
    """Those of the loop that kept them, which the way back reads from the last to the first."""
    found = scopes.history_of(element)
    assert found is not None
    history, reader = found
    test = loop.bodies[0].outputs[0].node
    always = test is not None and test.verb == "constant" and bool(test.attrs["value"].all())
    if reader is not loop or not always or loop.attrs["maximum_iterations"] >= 0:
        raise NotKnown("the index is read from a history, which the loop need not read to its end")
    maker, kept = _kept(history, scopes)
    made = indices_of(kept, maker, scopes, known)
    return Indices(made.trips, made.first, made.step, not made.backwards)


def _kept(history: Value, scopes: Scopes) -> tuple[PlanNode, Value]:
    """The loop that makes a history, and what it keeps of each iteration."""
    history = scopes.outermost(history)
    around = scopes.history_of(history)
    if around is not None:  # an element of what the loop around it kept
        history = scopes.outermost(_kept(around[0], scopes)[1])
    while (node := history.node) is not None and node.verb in ("alias", "branch"):
        if node.verb == "alias":
            history = scopes.outermost(node.inputs[0])
            continue
        made = [v for body in node.bodies if (v := body.outputs[history.index]).node is None or v.node.verb != "none"]
        if len(made) != 1:  # the branch that is not taken leaves nothing
            break
        history = scopes.outermost(made[0])
    if node is None or node.verb != "loop" or history.index < carried(node.opdef, node.attrs):
        raise NotKnown("the index is read from a history that no loop made of its counter")
    return node, node.bodies[1].outputs[history.index]
