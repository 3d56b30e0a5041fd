"""Executors compile placed graphs and run their steps; session factories open sessions on a target.

Both are contracts for engines that come from plugins. The host's own straight-line executor is one of them. Planning and an
executor's compilation are pipelines of named stages (:func:`run_stages`).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from graphdock.contracts.device import Device
from graphdock.contracts.ir import PlanGraph, PlanNode, Value
from graphdock.contracts.kernel import KernelDef, Prepared
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.step import StepContext, TraceLevel
from graphdock.contracts.streams import StreamName
from graphdock.errors import UnimplementedError
from graphdock.shape import Dims

if TYPE_CHECKING:
    from graphdock.contracts.in_flight import InFlightStep, InFlightSteps

__all__ = ["SCALAR", "Executor", "PlacedGraph", "Program", "SessionFactory", "StageReport", "run_stages"]


#: Memory space of the small numbers that steer a step: Python ints and bools of the host.
SCALAR = "scalar"


@lazy_dataclass(frozen=True, slots=True)
class StageReport:
    """Duration of a stage of planning, in milliseconds."""

    name: str
    ms: float


@lazy_dataclass(frozen=True, slots=True)
class PlacedGraph:
    """A plan of which everything is decided but storage: what an executor compiles. It is not changed any more.

    Any order of the nodes that keeps data, control and order edges gives the same results; the list of nodes is one of them. A node
    with bodies runs them as its verb says (:mod:`graphdock.contracts.opdef`, :mod:`graphdock.contracts.bodies`).

    Attributes:
      graph: every node has its device; tensors that change their memory space do so in nodes of the verb ``move``.
      kernels: node -> kernel. Absent are nodes that the host runs itself: by verb, or, where the output's home is
        :data:`SCALAR`, by ``functions``. A kernel that takes the handle of a variable in another memory space gets a copy in
        its own, and what it writes there goes back.
      prepared: node -> what its kernel stated, of those kernels that have ``prepare``; each context binds it once.
      home: value -> memory space. A constant has none: each reader gets the array in the space that it needs. Of a history, or of
        what a branch leaves, it is the space of what that holds, however deep; what lies elsewhere is moved element by element.
      needs: node -> per input the space it wants it in; None where any will do, and for handles.
      handles: handle anywhere -> the output of the op that names the resource.
      resource: that output -> the resource itself. ``access(reads, writes)``: what runs a function under locks on resources, as
        ``access(reads, writes)(step.token, function, *args)``; for the statements of a plan that ``holds`` nothing.
      device_of: node -> its open device. ``spaces``: memory space -> a device that copies and allocates there.
      functions: node of the verb ``host``, or with a :data:`SCALAR` output -> what computes its outputs from its inputs (of a
        handle, the resource): host arrays, or Python ints and bools.
      formula: node with a :data:`SCALAR` output and a formula -> the formula as a Python expression, a template with ``{0}`` for
        its first operand; what ``functions`` computes, for executors that print.
      function: function attribute of a node -> what kernels get for it (:meth:`graphdock.contracts.BuildContext.function`); an
        executor hands it on in each context.
      seconds: node -> about how long one run of it takes, measured or from the rates of its device; None where nobody knows.
      infer: shapes of a node's outputs from actual shapes and elements of its inputs, by its shape rule; raises ShapeError. For
        what a plan could only assume (:mod:`graphdock.contracts.ir`).
      stream: name of a stream of random numbers -> a new one. A kernel gets those of :func:`streams_of` its node behind its inputs.
        Executors ``begin`` each with the ordinal that the step's services give for its name, and say ``at`` which iterations of
        its loops it stands.
      holds: a step holds its locks on all resources while it runs. Where False some node waits for other steps: the session locks
        nothing, and the program locks what it touches statement by statement.
      pieces: its steps are fed and fetched piece by piece (:meth:`Program.begin`), and hold nothing.
      debug, check_numerics: as configured.
      steps_in_flight: as configured; with more than 1 a step may release its locks, and end, before its work is done.
      threads: on so many threads a kernel may compute. ``workers``: the session asks for kernels of several nodes at once, on so
        many threads; 1 where it does not.
    """

    graph: PlanGraph
    kernels: Mapping[PlanNode, KernelDef]
    prepared: Mapping[PlanNode, Prepared]
    home: Mapping[Value, str]
    needs: Callable[[PlanNode], Sequence[str | None]]
    handles: Mapping[Value, Value]
    resource: Callable[[Value], Any]
    access: Callable[[Sequence[Any], Sequence[Any]], Callable[..., Any]]
    device_of: Callable[[PlanNode], Device]
    spaces: Mapping[str, Device]
    functions: Callable[[PlanNode], Callable[..., Any]]
    formula: Callable[[PlanNode], str]
    infer: Callable[[PlanNode, Sequence[Dims], Mapping[int, Any]], Sequence[Dims]]
    stream: Callable[[StreamName], Any]
    function: Callable[[Any], Callable[..., Sequence[Any]]] | None = None
    seconds: Callable[[PlanNode], float | None] = lambda node: None
    holds: bool = True
    pieces: bool = False
    debug: bool = False
    check_numerics: bool = False
    steps_in_flight: int = 1
    threads: int = 1
    workers: int = 1


class Program(ABC):
    """A compiled plan. Immutable; any number of steps run it at once, each in a context of its own.

    Attributes:
      holds: the session locks all resources of the plan for the whole step. False where the graph says so: the program then locks
        for itself.
      takes_turns: steps wait for something before they lock any resource (``turn``).
      overlaps: a step releases its locks (``step.release_locks``) when all that it does is queued; where it has ``step.on_submit``
        it calls that, and ends without waiting for the work.
      checked: variables that must hold a value when a step begins, each with a node that reads it; the session sees to it, so that
        nothing has run when one does not. The program checks all others itself.
      memory: memory space -> bytes that it keeps in one context (``step.state``).
      source: its text, for ``explain``; empty where it has none. ``notes``: more lines for ``explain``.
      stages: the stages of its compilation, in order.
    """

    holds: bool = True
    takes_turns: bool = False
    overlaps: bool = False
    checked: Sequence[tuple[Any, PlanNode]] = ()
    memory: Mapping[str, int] = MappingProxyType({})
    source: str = ""
    notes: Sequence[str] = ()
    stages: Sequence[StageReport] = ()

    @abstractmethod
    def run(self, step: StepContext, feeds: Sequence[Any]) -> Sequence[Any]:
        """Run one step on the calling thread.

        It stops before its next node, or inside the wait it is in, once ``step.token`` is cancelled, which it watches or looks at.
        What it keeps for the next step stands in ``step.state``; the first step of a context makes it.

        Args:
          feeds: host arrays, in the order of the graph's inputs; not to be written.

        Returns:
          The graph's outputs, in order: arrays of the caller's own, that share memory with nothing; NumPy scalars at rank 0.

        Raises:
          GraphdockError: what a kernel raised, with the node and the user's line (:func:`graphdock.contracts.kernel_error`).
        """

    def begin(self, step: StepContext) -> Callable[[Mapping[int, Any], Sequence[int], Collection[str]], list[Any]]:
        """Begin a step of a graph in ``pieces``: a function that runs the next one, as :meth:`run` does, on the thread that calls.

        It takes what is fed now (number of the graph's input -> host array, its own), the numbers of the outputs that are wanted
        now, and the origins of nodes that are to have run. It runs what these need and no piece before has run, and returns the
        outputs. Order edges hold within a piece.

        Raises:
          UnimplementedError: the executor runs no such steps; it ``refuses`` their graphs. The function raises
          InvalidArgumentError, before anything runs, where an input is needed that no piece has fed.
        """
        raise UnimplementedError(f"{type(self).__name__} runs no steps in pieces", hint="choose another executor")

    def turn(self, step: StepContext, function: Callable[..., Any], *args: Any) -> Any:
        """``function(*args)`` while the step holds what it needs before its locks, such as a queue that steps take turns on.

        Asked for where ``takes_turns``. So a step that waits for a resource never keeps what another one needs to free it.

        Raises:
          DeadlineExceededError: its turn did not come in time. Or the error that the step was cancelled with, or of the function.
        """
        raise NotImplementedError

    def follow(self, step: StepContext, touched: Sequence[tuple[Any, bool]]) -> None:
        """Let the step that is about to run come after what is in flight on its resources. It holds its locks.

        Called where steps of other programs overlap. Optional; default: the host waits.

        Args:
          touched: the resources of the plan, and whether it writes them.
        """
        for resource, writes in touched:
            resource.settle(writes)

    def in_flight(
        self,
        steps: InFlightSteps,
        step: StepContext,
        name: Callable[[], str],
        give_back: Callable[[list[Any]], None],
    ) -> InFlightStep:
        """Taker of the work of a step of a program that ``overlaps``, should it end before that. Nothing has run yet.

        Args:
          steps: the account of its session. ``name``: of the step, for messages.
          give_back: to be called with a list of the context once its work is done; it takes the context out of it.
        """
        raise NotImplementedError

    def trace(self, step: StepContext, level: TraceLevel) -> AbstractContextManager[None]:
        """A block in which what runs in the context reports what it does to ``step.events``. Nothing runs in it at entry.

        Optional; default: refused.

        Raises:
          UnimplementedError: the executor can't tell.
        """
        raise UnimplementedError(f"{type(self).__name__} does not trace its steps", hint="choose another executor")

    def free(self, step: StepContext) -> None:
        """Let go of what ``step.state`` holds, at once. No step runs in the context, and none will. Optional; default: drops it."""
        step.state = None


class Executor(ABC):
    """Compiles placed graphs. ``name`` is what ``executor=`` in the configuration says.

    ``concurrent``: it runs kernels of several nodes at once, on up to ``inter_op_threads`` threads.

    Threads: ``compile`` runs under the planner's lock.
    """

    name: ClassVar[str]
    concurrent: ClassVar[bool] = False

    def refuses(self, placed: PlacedGraph) -> str | None:
        """Reason why it can't run this graph; None where it can. ``executor="auto"`` takes the first that does not refuse.

        Optional; default: it runs all. Called under the planner's lock, before ``compile``.
        """
        return None

    def yields(self, placed: PlacedGraph) -> str | None:
        """Reason why the next executor that takes this graph should run it, though this one can; None where it should not.

        Asked for ``executor="auto"`` alone, and not of the last one. Optional; default: it runs what it can. Called under the
        planner's lock, after ``refuses``.
        """
        return None

    @abstractmethod
    def compile(self, placed: PlacedGraph) -> Program:
        """The program of a graph. It takes no memory of any device: ``explain`` compiles too, and a resource is not there yet.

        Raises:
          UnimplementedError: the executor can't run this graph; it names the node.
        """


class SessionFactory(ABC):
    """Opens sessions for targets of one scheme, as ``ray://`` or the empty scheme of local sessions."""

    scheme: str

    @abstractmethod
    def open(self, target: str, graph: Any, config: Any, host: Any) -> Any:
        """A session on ``target``: a ``tf.Session`` to all that takes one.

        Args:
          graph: the graph to run; None: the default graph. ``config``: a SessionConfig, or None. ``host``: whose plugins are used.

        Raises:
          UnavailableError: the target can't be reached.
        """

    def reset(self, target: str, containers: Sequence[str] | None, config: Any, host: Any) -> None:
        """Free what is in containers of the target's tasks: of these names, or of all. Optional; default: refused.

        Raises:
          UnimplementedError: its targets keep nothing that outlives sessions.
        """
        raise UnimplementedError(f"{type(self).__name__} has no containers to reset on {target}")


T = TypeVar("T")


def run_stages(stages: Mapping[str, Callable[[T], None]], subject: T, debug: bool) -> list[StageReport]:
    """Run the stages in order over ``subject``; how long each took.

    Raises:
      whatever a stage raises; in debug mode its name is added as a note.
    """
    reports = []
    for name, stage in stages.items():
        start = time.perf_counter()
        try:
            stage(subject)
        except Exception as error:
            if debug:
                error.add_note(f"in the stage {name!r}")
            raise
        reports.append(StageReport(name, (time.perf_counter() - start) * 1e3))
    return reports
