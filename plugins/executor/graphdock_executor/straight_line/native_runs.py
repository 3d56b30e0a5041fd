"""Runs of native launches in an instance: one function each, over the addresses of its buffers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from graphdock.contracts.native import Native, NativeCall, NativeShapes
from graphdock.contracts.step import CancellationToken
from graphdock.errors import ShapeError

from graphdock_executor.lower import Build
from graphdock_executor.step_program.names import Operand
from graphdock_executor.step_program.statements import Launch, NativeRun

__all__ = ["bind_runs", "call_alone"]


def bind_runs(
    runs: Iterable[NativeRun],
    builds: Mapping[Operand, Build],
    namespace: dict[str, Any],
    called: dict[str, Any],
    token: CancellationToken,
) -> None:
    """Give each run its function, under its name in the namespace of an instance, where its buffers are.

    Args:
      called: what puts functions back after an interrupt (see ``stoppers``).
    """
    for run in runs:
        place = {name: i for i, name in enumerate((*run.args, *run.returns))}
        calls, sized, natives = [], list[_Sized](), list[Native]()
        alone = _OneByOne(namespace)
        for launch in run.body.statements:
            assert isinstance(launch, Launch)
            build = builds[launch.kernel]
            assert build.prepared is not None and build.prepared.native is not None and build.told is not None
            native, count = build.prepared.native, len(build.told.inputs)
            buffers = [
                place[a] if static is None else static.value(namespace)  # type: ignore[index]
                for a, static in zip(launch.args, build.static, strict=True)
            ]
            alone.add(launch, buffers, [place[r] for r in launch.returns])
            numbers: Any = native.numbers
            if native.sized is not None:
                shapes = native.sized()
                made = [i for i, o in enumerate(build.told.outputs) if o.mode.kind not in ("planned", "inplace")]
                numbers = shapes.numbers
                inputs = [b if isinstance(b, int) else b.shape for b in buffers[:count]]
                sized.append(_Sized(shapes, inputs, made, [place[r] for r in launch.returns]))
                for i, name in zip(made, launch.returns, strict=True):
                    buffers.insert(count + i, place[name])
            calls.append(NativeCall(native.address, tuple(buffers), numbers, native.brief, native.status))
            natives.append(native)
        fails = [native for native in natives if native.status]
        function = (fails or natives)[0].chain(calls, len(place))  # one that knows of a status, where there is one
        if sized:
            body = functools.partial(_body, namespace, run.call.text)
            function = _sized_run(function, sized, body, alone if fails else None)
        elif fails:
            function = _checked(function, alone)
        namespace[run.call.text] = _FirstRun(run.call.text, function, namespace, called, token)


@dataclass(frozen=True, slots=True)
class _Sized:
    """A launch in a run whose shapes only the step knows.

    Attributes:
      inputs: place of each among what the run is given and makes, or its shape. ``made``: the outputs that are made for the step.
      places: of those.
    """

    shapes: NativeShapes
    inputs: Sequence[int | tuple[int, ...]]
    made: Sequence[int]
    places: Sequence[int]


class _OneByOne:
    """Launches of a run, called by themselves from the one on that has failed: that one raises its error."""

    __slots__ = ("_launches", "_namespace")

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._launches: list[tuple[Launch, Sequence[Any], Sequence[int]]] = []
        self._namespace = namespace

    def add(self, launch: Launch, buffers: Sequence[Any], returns: Sequence[int]) -> None:
        """Add a launch.

        Args:
          buffers: what it is called with; an int is a place among what the run is given and makes, as are those of ``returns``.
        """
        self._launches.append((launch, tuple(buffers), returns))

    def __call__(self, first: int, every: list[Any]) -> None:
        """Make the launches from that number on; what they return is put into its places."""
        for launch, buffers, places in self._launches[first:]:
            args = [every[b] if isinstance(b, int) else b for b in buffers]
            made = call_alone(launch, launch.kernel.value(self._namespace), args)
            for place, each in zip(places, made if len(places) > 1 else (made,), strict=False):
                every[place] = each


def call_alone(launch: Launch, kernel: Callable[..., Any], args: Sequence[Any]) -> Any:
    """Result of the kernel of a launch. Tracebacks with this function's frame are those of the launch."""
    return kernel(*args)


def _checked(run: Callable[..., int | None], alone: _OneByOne) -> Callable[..., None]:
    """The function of a run in which a launch may fail."""

    def compute(*args: Any) -> None:
        failed = run(*args)
        if failed is not None:
            alone(failed, list(args))

    return compute


def _body(namespace: Mapping[str, Any], name: str) -> Callable[..., Any]:
    """The launches of a run one by one."""
    body: Callable[..., Any] = namespace[f"{name}_body"]
    return body


def _sized_run(
    run: Callable[..., int | None],
    launches: Sequence[_Sized],
    body: Callable[[], Callable[..., Any]],
    alone: _OneByOne | None,
) -> Callable[..., Any]:
    """The function of a run that makes results: their shapes, and the numbers of its calls, follow from what it is given, and are
    computed anew where that has other shapes than the last time. Shapes that a kernel refuses are refused by that one's launch.

    Args:
      launches: in order; those whose shapes are known are not among them. ``body``: gives the launches one by one.
      alone: where one may fail.
    """
    makers = [(one.shapes.make, i) for one in launches for i in one.made]
    last: list[Any] = [None]
    entered: dict[Any, None] = {}

    def read(shapes: Sequence[tuple[int, ...]]) -> None:
        every: list[Any] = [*shapes, *[None for _ in makers]]
        for one in launches:
            found = one.shapes.read([every[i] if isinstance(i, int) else i for i in one.inputs])
            for place, i in zip(one.places, one.made, strict=True):
                every[place] = found[i]
        entered.clear()
        entered.update({one.shapes.within: None for one in launches if one.shapes.within is not None})

    def compute(*args: Any) -> Any:
        shapes = [a.shape for a in args]
        if shapes != last[0]:
            last[0] = None
            try:
                read(shapes)
            except ShapeError:
                return body()(*args)
            last[0] = shapes
        made = [make(i) for make, i in makers]
        if entered:
            with ExitStack() as stack:
                for context in entered:
                    stack.enter_context(context)
                failed = run(*args, *made)
        else:
            failed = run(*args, *made)
        if failed is not None and alone is not None:
            every = [*args, *made]
            alone(failed, every)
            made = every[len(args) :]
        return made[0] if len(made) == 1 else made

    return compute


class _FirstRun:
    """Stands for a run until it has been called: then each kernel is called by itself, and held to its contract."""

    __slots__ = ("_called", "_name", "_namespace", "_run", "_token")

    def __init__(
        self,
        name: str,
        run: Callable[..., Any],
        namespace: dict[str, Any],
        called: dict[str, Any],
        token: CancellationToken,
    ) -> None:
        self._name, self._run, self._namespace, self._called, self._token = name, run, namespace, called, token

    def __call__(self, *args: Any) -> Any:
        made = self._namespace[f"{self._name}_body"](*args)
        self._called[self._name] = self._run
        if self._namespace.get(self._name) is self:  # else a stop has put its own there
            self._namespace[self._name] = self._run
            # a stop in between was overwritten just now: it sets the error first
            if self._token.error is not None:
                raise self._token.error
        return made
