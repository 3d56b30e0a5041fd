"""The scheduler of one step, on the thread that runs it: rows that are ready run, the others wait for them.

A row is run by calling its function with the slots of its activation. Where it has to wait, for a Future or for a body, it returns
True, and whoever ends the wait lets its successors go on (:meth:`Activation.resume`). One thread changes counts, so there are no
locks; other threads put what they have done into the mailbox, in which the scheduler sleeps when nothing is ready.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from graphdock.contracts import INTERRUPTS_SEEN, PlanNode, StepContext, errors, kernel_error

from graphdock_dataflow.printed import DUE, failed_node, print_level

if TYPE_CHECKING:
    from graphdock_dataflow.instance import Runnable

__all__ = ["Activation", "Run"]

#: Of nodes that a message names, the most.
_SHOWN = 5


class Activation:
    """One execution of a level: of the plan's graph, of a branch's body, of one iteration of a loop.

    Attributes:
      values: its slots; the first is the activation itself, until it has ended.
      pending: of each row, how many it waits for still. ``ready``: rows that wait for none.
      iterations: numbers of the loops' iterations that it stands in, the innermost last.
      ended: called with the activation when all its rows are done.
      parent, row: the activation and its row that it is for; None for the plan's graph. ``loop``: of which it is an iteration.
    """

    __slots__ = ("ended", "iterations", "level", "loop", "parent", "pending", "ready", "row", "run", "values")

    def __init__(
        self,
        run: Run,
        level: Runnable,
        values: list[Any],
        iterations: tuple[int, ...],
        ended: Callable[[Activation], Any],
        parent: Activation | None = None,
        row: int = -1,
        loop: Any = None,
    ) -> None:
        self.run = run
        self.level = level
        self.values = values
        values[0] = self
        self.pending = level.pending.copy()
        self.ready = level.roots.copy()
        self.iterations = iterations
        self.ended = ended
        self.parent = parent
        self.row = row
        self.loop = loop
        run.active.append(self)

    def settle(self) -> None:
        """Nothing of the step runs any more, and nothing is waited for."""
        raise errors.InternalError("a step waits for nothing, and is not at its end")

    def resume(self, row: int) -> None:
        """A row is done that has waited: let those go on that wait for it."""
        _, _, solo, joint = self.level.rows[row]
        self.let_go(solo, joint)

    def let_go(self, solo: Sequence[int], joint: Sequence[int]) -> None:
        """Let rows go on, of which those in ``joint`` may wait for others."""
        ready, pending = self.ready, self.pending
        if not ready:
            self.run.active.append(self)
        ready.extend(solo)
        for row in joint:
            pending[row] -= 1
            if not pending[row]:
                ready.append(row)


class Run:
    """One step.

    Args:
      order: draws the next row; None for the order that is quickest.

    Attributes:
      active: activations in which a row may be ready.
      waiting: Future -> the activation and the row that waits for it, and what takes its result.
      handed: how many of them the pool is at work on.
      results: what the plan's graph returned; None until it has.
    """

    __slots__ = ("_forget", "active", "handed", "mailbox", "order", "results", "step", "token", "waiting")

    def __init__(self, step: StepContext, order: random.Random | None = None) -> None:
        self.step = step
        self.token = step.token
        self.order = order
        self.active: list[Activation] = []
        self.waiting: dict[Future[Any], tuple[Activation, int, Callable[[list[Any], Any], None], bool]] = {}
        self.handed = 0
        self.mailbox: SimpleQueue[Future[Any] | None] = SimpleQueue()
        self.results: list[Any] | None = None
        self._forget: Callable[[], None] | None = None

    def __call__(self, level: Runnable, feeds: Sequence[Any]) -> list[Any]:
        """Run the plan's graph to its end.

        Raises:
          The first error of a row, with its node; of the step's token; or an interrupt. Nothing of the step runs any more then.
        """
        values = level.values.copy()
        for slot, feed in zip(level.inputs, feeds, strict=True):
            values[slot] = feed
        if level.plain:
            self.straight(level, values)
            return [values[slot] for slot in level.outputs]
        root = level.begin(self, values, self._end)
        go_on = self._go_on if self.order is None else self._go_on_in_any_order
        try:
            go_on()
            while self.results is None:
                if self.waiting:
                    self._sleep()
                    go_on()
                else:
                    root.settle()
        except BaseException as error:
            self._stop(error)
            raise
        finally:
            if self._forget is not None:
                self._forget()
            self.active.clear()
        return self.results

    def drain(self) -> None:
        """Run what is ready, and what that lets go on, until nothing is left and nothing is waited for; errors as of a step."""
        go_on = self._go_on if self.order is None else self._go_on_in_any_order
        try:
            go_on()
            while self.waiting:
                self._sleep()
                go_on()
        except BaseException as error:
            self._stop(error)
            raise
        finally:
            if self._forget is not None:
                self._forget()
                self._forget = None
            self.active.clear()

    def _end(self, root: Activation) -> None:
        values = root.values
        self.results = [values[slot] for slot in root.level.outputs]

    def _go_on(self) -> None:
        """Run rows until none is ready."""
        active, token = self.active, self.token
        while active:
            activation = active.pop()
            rows, values, pending, ready = (
                activation.level.rows,
                activation.values,
                activation.pending,
                activation.ready,
            )
            take, put = ready.pop, ready.append
            row = -1
            try:
                while ready:
                    row = take()
                    run, drops, solo, joint = rows[row]
                    if token.error is not None:
                        raise token.error
                    if run(values):
                        for slot in drops:
                            values[slot] = None
                        continue
                    for slot in drops:
                        values[slot] = None
                    ready += solo
                    for other in joint:
                        left = pending[other] - 1
                        pending[other] = left
                        if not left:
                            put(other)
            except Exception as error:  # noqa: BLE001 - whatever a kernel raises is raised again with its node
                self.explain(error, _node_of(activation, row))
                raise

    def _go_on_in_any_order(self) -> None:
        """As :meth:`_go_on`, each time with any of the rows that are ready."""
        order, active = self.order, self.active
        assert order is not None
        while active:
            at = order.randrange(len(active))
            activation = active[at]
            ready = activation.ready
            if not ready:
                active[at] = active[-1]
                active.pop()
                continue
            at = order.randrange(len(ready))
            ready[at], ready[-1] = ready[-1], ready[at]
            row = ready.pop()
            run, drops, solo, joint = activation.level.rows[row]
            try:
                self.token.check()
                waits = run(activation.values)
            except Exception as error:  # noqa: BLE001 - as above
                self.explain(error, _node_of(activation, row))
                raise
            for slot in drops:
                activation.values[slot] = None
            if not waits:
                activation.let_go(solo, joint)

    def straight(self, level: Runnable, values: list[Any]) -> None:
        """Run the rows of a plain level, as they stand, at once."""
        pieces, token = level.pieces, self.token
        if pieces is None:
            level.runs += 1
            if level.runs > DUE:
                pieces = level.pieces = print_level(level)
        if pieces is not None:
            try:
                for piece in pieces:
                    piece(values)
                    if token.error is not None:
                        raise token.error
            except Exception as error:  # noqa: BLE001 - as above
                self.explain(error, failed_node(level, pieces, error))
                raise
            return
        number = 0
        try:
            for number, made in enumerate(islice(level.rows, level.plain)):  # noqa: B007 - said of an error
                if token.error is not None:
                    raise token.error
                made[0](values)
                for slot in made[1]:
                    values[slot] = None
        except Exception as error:  # noqa: BLE001 - as above
            self.explain(error, level.table.rows[number].node)
            raise

    # -- waiting

    def wait(
        self,
        activation: Activation,
        row: int,
        future: Future[Any],
        take: Callable[[list[Any], Any], None],
        handed: bool = False,
    ) -> bool:
        """Let a row wait for a Future, whose result ``take(values, result)`` puts into the slots; False where it is done."""
        if future.done() and not handed:
            take(activation.values, self._result(future))
            return False
        self.waiting[future] = activation, row, take, handed
        self.handed += handed
        future.add_done_callback(self.mailbox.put)
        return True

    def look(self) -> None:
        """Take what has come meanwhile, for whoever goes on for long while others wait."""
        try:
            while True:
                self._take(self.mailbox.get_nowait())
        except Empty:
            return

    def _sleep(self) -> None:
        """Sleep until something comes, and take all that has."""
        if self._forget is None:
            self._forget = self.token.watch(lambda error: self.mailbox.put(None))
        while True:
            try:
                come = self.mailbox.get(timeout=INTERRUPTS_SEEN)
                break
            except Empty:  # an interrupt that came as it fell asleep is raised here
                continue
        self._take(come)
        self.look()

    def _take(self, future: Future[Any] | None) -> None:
        if self.token.error is not None:
            waits = next(iter(self.waiting.values()), None)
            if waits is not None and isinstance(self.token.error, Exception):
                self.explain(self.token.error, _node_of(*waits[:2]))
            raise self.token.error
        if future is None or future not in self.waiting:
            return
        activation, row, take, handed = self.waiting.pop(future)
        self.handed -= handed
        try:
            take(activation.values, self._result(future))
        except Exception as error:  # noqa: BLE001 - whatever a kernel raises is raised again with its node
            self.explain(error, _node_of(activation, row))
            raise
        activation.resume(row)

    def _result(self, future: Future[Any]) -> Any:
        try:
            return future.result()
        except CancelledError:
            self.token.check()
            raise errors.AbortedError("what the step waited for was cancelled") from None

    # -- errors

    def explain(self, error: Exception, node: PlanNode | None) -> None:
        """Raise what an error means to the user, ``from`` it; return where it says that itself, with its node filled in."""
        if node is None or (error is self.token.error and not isinstance(error, errors.GraphdockError)):
            return
        explained = kernel_error(error, node)
        if explained is not error:
            try:
                raise explained from error
            finally:
                del explained  # a frame that held it would make a cycle of it and its traceback

    def _stop(self, error: BaseException) -> None:
        """Cancel what waits, and see the end of what runs: the step's locks are released next."""
        cancelled = []
        while self.waiting:
            future, (activation, row, _, handed) = self.waiting.popitem()
            if future.cancel():
                node = _node_of(activation, row)
                if node is not None:
                    cancelled.append(node.origin)
            elif handed:
                future.exception()
        if cancelled:
            names = sorted(set(cancelled))
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            error.add_note(f"cancelled with it: {', '.join(names[:_SHOWN])}{more}")


def _node_of(activation: Activation, row: int) -> PlanNode | None:
    """The node of a row; of one that ends a body, the node that the body is of."""
    while row >= 0:
        node = activation.level.table.rows[row].node
        if node is not None:
            return node
        if activation.parent is None:
            return None
        activation, row = activation.parent, activation.row
    return None
