"""Session: runs steps of a graph."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import NoneType, TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import numpy as np

from graphdock.arguments import check_keywords, check_type
from graphdock.config.session_config import SessionConfig, Translatable, effective_config
from graphdock.contracts.runtime.resources import ResourceClosed, ResourceStore
from graphdock.contracts.step import StepServices
from graphdock.contracts.streams import RandomOrdinals
from graphdock.cores import threads
from graphdock.errors import (
    FailedPreconditionError,
    GraphdockError,
    InvalidArgumentError,
    UnavailableError,
    format_error,
)
from graphdock.graph import default_session
from graphdock.graph.graph import Graph, get_default_graph
from graphdock.graph.operation import Operation
from graphdock.graph.site import capture, describe
from graphdock.graph.tensor import Tensor
from graphdock.locks import new_lock
from graphdock.planning.plan import Plan
from graphdock.planning.planner import Planner
from graphdock.plugin.host import Host, default_host
from graphdock.session.fetches import Feed, FetchPlan, convert_feed, single_tensors
from graphdock.session.plan_cache import (
    PlanCache,
    Signature,
    for_any_shape,
    plan_for,
    signature_of,
    takes,
    with_static_shapes,
)
from graphdock.session.run_options import (
    RunMetadata,
    RunOptions,
    SessionType,
    checked_options,
    name_operation,
    traced,
)
from graphdock.typing import HasTensor

if TYPE_CHECKING:
    from graphdock.contracts.deadlines import DeadlineClock
    from graphdock.contracts.step import StepContext
    from graphdock.session.compiling import Compiling
    from graphdock.session.overlap import Overlap
    from graphdock.session.partial_run import PartialRun

__all__ = ["InteractiveSession", "Session"]

Key = TypeVar("Key")


class Session(metaclass=SessionType):
    """Runs steps of one graph on the backends of its configuration.

        with tf.Session() as sess:
            sess.run(train_op, {x: batch})

    The graph may grow between steps; variables in the container ``""`` are this session's own. Steps may be run from many
    threads at once; each locks the variables it touches.

    Args:
      target: ``""`` for this process; a target such as ``ray://head:6379`` is opened by the plugin that owns the scheme.
      graph: the graph to run; default: the default graph.
      config: a SessionConfig; fields it does not set come from the environment, the configuration file, the defaults.
      host: the Host whose plugins are used; default: the graph's.

    Raises:
      NotFoundError: no plugin owns the target's scheme.
      UnknownBackendError, PluginError, DeviceUnavailable: a backend of the configuration can't be used.
    """

    def __init__(
        self,
        target: str = "",
        graph: Graph | None = None,
        config: SessionConfig | Translatable | None = None,
        host: Host | None = None,
    ) -> None:
        self.graph = get_default_graph() if graph is None else graph
        check_type(self.graph, Graph, "Session: graph", "a tf.Graph")
        check_type(host, (Host, NoneType), "Session: host", "a graphdock.plugin.host.Host")
        self._host = self.graph.host if host is None else host
        self.config = effective_config(config)
        self._closed = False
        self._lock = new_lock()
        self._store = ResourceStore()
        self._ordinals = self._make_ordinals()
        c = self.config
        self._plans = PlanCache(c.plan_cache_size, c.deterministic)
        self._compiling: Compiling | None = None
        self._pieces: dict[Any, Plan] = {}
        self._signatures = self._plans.signatures
        self._recent: Plan | None = None
        self._timeout = c.operation_timeout
        services = StepServices(
            f"session-{os.urandom(8).hex()}",
            deadlines=self._deadline_clock(),
            ordinal=self._ordinals.reserve,
            container=self._container,
            workers=lambda: self._host.workers(c.inter_op_threads or threads()),
        )
        self._planner = Planner(self._host, c, self._ordinals, services, self._is_part)
        self._overlap: Overlap | None = None
        if c.steps_in_flight > 1:
            from graphdock.session.overlap import Overlap

            self._overlap = Overlap(c.steps_in_flight, self.graph, self._remake)

    def _repr_html_(self) -> str | None:
        """Its settings, and the plan that it made last; before the first one its graph."""
        from graphdock.config.values import plain
        from graphdock.graph.notebook import as_html

        settings = [(n, str(plain(v)), s) for n, (v, s) in self.config.resolved().items()]
        return as_html(self, "closed" if self._closed else "open", settings, self._recent)

    # -- life ---------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._check_open()
        self._graph_scope = self.graph.as_default()
        self._graph_scope.__enter__()
        default_session.push(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        default_session.pop(self)
        self._graph_scope.__exit__(kind, error, trace)
        try:
            self.close()
        except GraphdockError as late:
            if error is None:
                raise
            error.add_note(f"besides, {format_error(late)}")

    def as_default(self) -> default_session.AsDefault[Self]:
        """Make this the default session inside a ``with``, without closing it at the end."""
        return default_session.AsDefault(self)

    def close(self) -> None:
        """Release plans and private variables. Closing twice does nothing.

        Steps that run on other threads end with a CancelledError before their next kernel, copy or wait. Returns once none of
        them holds a variable, and the work of those that have returned is done.

        Raises:
          GraphdockError: a step failed after it had returned (``steps_in_flight``) and was not raised yet. All is closed.
        """
        self._closed = True
        if self._compiling is not None:
            self._compiling.close()
        self._planner.close()
        self._host.keep_measured()
        with self._lock:
            self._plans.clear()
            self._recent = None
        try:
            self._store.close()
        finally:
            if self._overlap is not None:
                self._overlap.close()

    def synchronize(self) -> None:
        """Wait until the work of all steps that have returned is done. Only with ``steps_in_flight`` is there any left.

        Raises:
          GraphdockError: one of them failed; the error names the step, the node and the user's line, and is raised once. Of
            several, those of the later steps are raised by the next calls. FailedPreconditionError: the session is closed.
        """
        self._check_open()
        if self._overlap is not None:
            self._overlap.synchronize()

    def _check_open(self) -> None:
        if self._closed:
            raise FailedPreconditionError(
                "the session is closed", site=describe(capture()), hint="make a new tf.Session()"
            )

    @staticmethod
    def reset(
        target: str = "",
        containers: list[str] | None = None,
        config: SessionConfig | Translatable | None = None,
        host: Host | None = None,
    ) -> None:
        """Close what is in named containers (all of them when none is named), for every session of the host.

        Waits until no step uses them. Their memory is freed; a variable of the same name may then have another type or device.

        Args:
          host: whose containers; default: the process's own.
        """
        names = [] if containers is None else containers
        check_type(names, (list, tuple), "Session.reset: containers", "a list of names")
        check_type(host, (Host, NoneType), "Session.reset: host", "a graphdock.plugin.host.Host")
        host = default_host() if host is None else host
        if target:
            host.session_factory(target).reset(target, containers, config, host)
            return
        with host.containers_lock:
            stores = [host.containers.get(n) for n in (list(host.containers) if containers is None else containers)]
        for store in stores:
            if store is not None:
                store.clear()

    #: Whether it runs a task's part of a step, where jobs and tasks that scopes ask for are its own.
    _is_part = False

    def _make_ordinals(self) -> RandomOrdinals:
        """Return how often its random ops have run; several sessions on parts of one graph share one."""
        return RandomOrdinals()

    def _deadline_clock(self) -> DeadlineClock | None:
        """The clock that is told of each step with a limit; None for the process's own."""
        return None

    def _container(self, name: str) -> ResourceStore:
        """The store of a container; where a session runs a part, its task's."""
        if not name:
            return self._store
        with self._host.containers_lock:
            store = self._host.containers.get(name)
            if store is None:
                store = self._host.containers[name] = ResourceStore(name)
            assert isinstance(store, ResourceStore)
            return store

    # -- running ------------------------------------------------------------------------------------------------------

    @overload
    def run(
        self,
        fetches: Operation,
        feed_dict: Mapping[Any, Any] | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> None: ...
    @overload
    def run(
        self,
        fetches: HasTensor | str,
        feed_dict: Mapping[Any, Any] | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any: ...
    @overload
    def run(
        self,
        fetches: list[Any],
        feed_dict: Mapping[Any, Any] | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> list[Any]: ...
    @overload
    def run(
        self,
        fetches: tuple[Any, ...],
        feed_dict: Mapping[Any, Any] | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> tuple[Any, ...]: ...
    @overload
    def run(
        self,
        fetches: Mapping[Key, Any],
        feed_dict: Mapping[Any, Any] | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> dict[Key, Any]: ...
    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Run one step.

        Args:
          fetches: a tensor, operation, variable or name of one, or any nested list, tuple, dict or namedtuple of them.
          feed_dict: tensor (or its name, or a nested tuple of tensors) -> value (or a like structure of values). Any tensor may be
            fed; what only it needs does not run.
          options: a time limit for this step, or a trace of it. run_metadata: filled in; see :mod:`graphdock.session.run_options`.

        Returns:
          The same structure with NumPy arrays (scalars at rank 0), and None for operations. Arrays are the caller's own.

        Raises:
          InvalidArgumentError, ShapeError, DTypeError: a fetch or feed that does not fit, or a placeholder that was not fed.
          UninitializedError: a variable is read before it was assigned. FailedPreconditionError: the session is closed.
          DeadlineExceededError: the step ran past its limit. CancelledError: the session was closed meanwhile.
          With ``steps_in_flight``, the error of an earlier step that had returned; then this one has not run.
          Before the first kernel runs nothing has changed; after that, updates that have run stay.
        """
        if self._closed:
            self._check_open()
        if options is None:
            limit, level = self._timeout, None
        else:
            limit, level = checked_options(options).seconds(self._timeout), options.trace_level
        try:
            kind = type(fetches)
            key = (kind, *fetches) if kind is list or kind is tuple else fetches
            if feed_dict:
                key = (dict, key, *feed_dict)
            signature = self._signatures[key]
        except (KeyError, TypeError):
            if isinstance(feed_dict, Mapping):
                feed_dict = single_tensors(feed_dict)
            signature = self._signature(fetches, feed_dict)
        if signature.mutation != self.graph._mutation:
            signature = self._signature(fetches, feed_dict)
        plan, shapes = signature.current
        values: Any = ()
        same = plan is not None
        if not same and signature.in_parts is not None:
            return signature.in_parts(self, signature, feed_dict, limit, level, run_metadata)
        if feed_dict:
            values = []
            for feed, value, shape in zip(signature.feeds, feed_dict.values(), shapes, strict=True):
                if type(value) is not np.ndarray or value.dtype is not feed.ready or not value.flags.c_contiguous:
                    value = convert_feed(feed, value)
                if value.shape != shape:
                    same = False
                    value = convert_feed(feed, value)
                values.append(value)
            if not same:
                plan = self._plan(signature, tuple([v.shape for v in values]))
        elif plan is None:
            plan = self._plan(signature, ())
        assert plan is not None
        if plan is not self._recent:
            self._plans.touch(plan)
            if self._overlap is not None:  # such a session has no recent plan
                results = self._overlap.run(signature, plan, same, values, limit, level, run_metadata)
                return results[0] if signature.single else signature.fetch.pack(results)
            self._recent = plan
        if run_metadata is not None:
            check_type(run_metadata, RunMetadata, "run_metadata", "tf.RunMetadata()")
            run_metadata.plan = plan
            run_metadata.cached = same
        while True:
            try:
                try:
                    step = plan.idle.pop()
                except IndexError:
                    step = plan.lease()
                try:
                    if step.used:
                        step.reset()
                    if limit is not None:
                        step.limit(limit)
                    results = plan.run(step, values) if not level else traced(plan, step, values, level, run_metadata)
                finally:
                    if run_metadata is not None:
                        run_metadata.events = step.reported()
                    plan.idle.append(step)
                    if len(plan.idle) > plan.most_idle:
                        plan.drop_idle(plan.most_idle)
                break
            except ResourceClosed:
                plan = self._remake(signature, plan, tuple([v.shape for v in values]))
                if run_metadata is not None:
                    run_metadata.plan, run_metadata.cached = plan, False
            except GraphdockError as error:
                name_operation(error, self.graph)
                raise
        return results[0] if signature.single else signature.fetch.pack(results)

    def make_callable(
        self, fetches: Any, feed_list: list[Any] | None = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """A function of the feeds' values, in the order of ``feed_list``, that runs the step.

        With ``accept_options`` it takes ``options`` and ``run_metadata`` by keyword, as ``run`` does.
        """
        check_type(feed_list, (list, tuple, NoneType), "make_callable: feed_list", "a list of tensors")
        keys = list(feed_list or ())
        self._check_open()
        FetchPlan(self.graph, fetches)
        for key in keys:
            Feed(self.graph, key)

        def call(*values: Any, **more: Any) -> Any:
            if more:
                check_keywords(more, ("options", "run_metadata") if accept_options else (), "this callable")
            if len(values) != len(keys):
                raise InvalidArgumentError(f"this callable takes {len(keys)} values", got=str(len(values)))
            return self.run(fetches, dict(zip(keys, values, strict=True)), **more)

        return call

    def partial_run_setup(self, fetches: Any, feeds: list[Any] | None = None) -> PartialRun:
        """Begin a step that is fed and fetched in pieces: the tensors that :meth:`partial_run` will fetch and feed.

        See :class:`graphdock.session.partial_run.PartialRun` for what runs when.
        """
        from graphdock.session.partial_run import PartialRun

        self._check_open()
        return PartialRun(self, fetches, feeds)

    def _begin(self, tensors: list[Tensor], operations: list[Operation], feeds: list[Tensor]) -> Callable[..., Any]:
        """Begin a step in pieces."""
        with self._lock:
            self._check_open()
            key = (*tensors, None, *operations, None, *feeds, self.graph._mutation)
            plan = self._pieces.pop(key, None)
            if plan is None or any(r.closed for r in plan.resources):
                shapes = [(t, t._dims) for t in feeds]
                plan = self._planner.plan(tensors, operations, shapes, pieces=True)
            self._pieces[key] = plan
            if len(self._pieces) > self.config.plan_cache_size:
                del self._pieces[next(iter(self._pieces))]
        step = plan.lease()
        run = plan.program.begin(step)
        return run if self._timeout is None else partial(_piece, step, self._timeout, run)

    def partial_run(self, handle: PartialRun, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """The next piece of the step that ``partial_run_setup`` began.

        Raises:
          InvalidArgumentError: a fetch or feed that was not set up, or is given a second time; or no such handle.
        """
        from graphdock.session.partial_run import PartialRun

        check_type(handle, PartialRun, "partial_run: handle", "what partial_run_setup returned")
        return handle.piece(fetches, feed_dict)

    @property
    def graph_def(self) -> Any:
        """The graph as a ``tf.GraphDef``: ``session.graph.as_graph_def()``."""
        return self.graph.as_graph_def()

    def plan(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Plan:
        """The plan a step would run, without running it. Placeholders that are not fed take their static shapes."""
        self._check_open()
        return self._dry_plans(fetches, feed_dict)[-1]

    def _dry_plans(self, fetches: Any, feed_dict: Mapping[Any, Any] | None) -> list[Plan]:
        """The plans of the parts of a step, in order. A part that is fed by another takes static shapes."""
        fetch, dims = with_static_shapes(self.graph, fetches, feed_dict)
        fed = single_tensors(feed_dict or {})
        if fed and self.config.shape_policy != "exact":
            signature, shapes = self._signature(fetches, fed), tuple([d for _, d in dims[: len(fed)]])
            if for_any_shape(signature, shapes, self.config.shape_policy):
                free = [(f.tensor, f.dims) for f in signature.feeds[: len(fed)]]
                plans = self._dry_parts(fetch, [*free, *dims[len(fed) :]])
                if all(takes(plan, shapes) for plan in plans):
                    return plans
        return self._dry_parts(fetch, dims)

    def _dry_parts(self, fetch: FetchPlan, dims: Sequence[tuple[Tensor, Any]]) -> list[Plan]:
        from graphdock.session.input_part import input_part

        part = input_part(self.graph, fetch, [t for t, _ in dims])
        if part is None:
            return [self._planner.plan(fetch.tensors, fetch.operations, dims, dry=True, patient=self._plans.patient)]
        first = self._planner.plan(part.tensors, part.operations, dims, dry=True, patient=self._plans.patient)
        fed = [*dims, *[(t, t._dims) for t in part.tensors]]
        operations = [op for op in fetch.operations if op not in part.done]
        return [
            first,
            self._planner.plan(fetch.tensors, operations, fed, dry=True, done=part.done, patient=self._plans.patient),
        ]

    def explain(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Plan of what a step would do: per node its device, kernel and why. See ``tf.profiler.Explanation``.

        It is for the shapes of the feeds, or for any shape where a step of this session would have such a plan.
        """
        absent = {kind: error.reason for kind, error in self._planner.absent.items()}
        self._check_open()
        *before, plan = self._dry_plans(fetches, feed_dict)
        return _explanation(plan, self.config, absent, [_explanation(p, self.config) for p in before])

    def list_devices(self) -> list[str]:
        """Names of this session's devices, in order of preference."""
        return [str(d) for d in self._planner.devices]

    # -- slow path ----------------------------------------------------------------------------------------------------

    def _signature(self, fetches: Any, feed_dict: Mapping[Any, Any] | None) -> Signature:
        """The signature of a call; one that is new is kept when its first plan is made."""
        with self._lock:
            self._check_open()
            made = signature_of(self.graph, fetches, feed_dict)
            return self._plans.known(made) or made

    def _plan(self, signature: Signature, shapes: tuple[Any, ...]) -> Plan:
        try:
            return self._make_plan(signature, shapes)
        except GraphdockError as error:
            name_operation(error, self.graph)
            if self.config.debug:
                raise
            error.__traceback__ = None  # it is the program's, not the planner's: its lines are what tells
            raise

    def _make_plan(self, signature: Signature, shapes: tuple[Any, ...]) -> Plan:
        with self._lock:
            self._check_open()
            # another thread may have made it meanwhile
            known = self._plans.known(signature) or signature
            plan = plan_for(known, shapes, self._plans, self._planner, self.config)
            if plan.later:
                self._complete(plan)
            return plan

    def _complete(self, plan: Plan) -> None:
        """Have what a plan does without compiled beside its steps, and a plan that has it put in its place."""
        if self._compiling is None or self._compiling.process != os.getpid():
            from graphdock.session.compiling import Compiling

            self._compiling = Compiling(self._plans, self._planner, self.graph, self._lock)
        self._compiling.add(plan)

    def _remake(self, signature: Signature, stale: Plan, shapes: tuple[Any, ...]) -> Plan:
        """A plan in place of one whose resources were reset."""
        with self._lock:
            self._check_open()
            self._plans.discard(stale)
            plan = self._plan(signature, shapes)
            if self._overlap is None:
                self._recent = plan
            return plan


def _explanation(*facts: Any) -> Any:
    """An Explanation, which a plugin brings. Raises UnavailableError where that is left out."""
    import graphdock

    try:
        return graphdock.profiler.Explanation(*facts)
    except AttributeError as error:
        if hasattr(graphdock, "profiler"):
            raise
        raise UnavailableError("no plugin here explains plans", hint=str(error)) from error


def _piece(step: StepContext, limit: float, run: Callable[..., Any], *given: Any) -> Any:
    """Run the next piece of a step, within so many seconds."""
    step.limit(limit)
    try:
        return run(*given)
    finally:
        step.token.deadline = None


class InteractiveSession(Session):
    """A session that is the default one of its thread as soon as it is made, for a shell or notebook."""

    def __init__(
        self,
        target: str = "",
        graph: Graph | None = None,
        config: SessionConfig | Translatable | None = None,
        host: Host | None = None,
    ) -> None:
        super().__init__(target, graph, config, host)
        default_session.push(self)

    def close(self) -> None:
        default_session.forget(self)
        super().close()
