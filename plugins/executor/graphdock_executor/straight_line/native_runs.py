"""Runs of native launches in an instance: one function each, over the addresses of its buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from graphdock.contracts.kernel import NativeCall
from graphdock.contracts.step import CancellationToken

from graphdock_executor.lower import Build
from graphdock_executor.step_program.names import Operand
from graphdock_executor.step_program.statements import Launch, NativeRun

__all__ = ["bind_runs"]


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
        place = {name: i for i, name in enumerate(run.args)}
        calls, chain = [], None
        for launch in run.body.statements:
            assert isinstance(launch, Launch)
            build = builds[launch.kernel]
            assert build.prepared is not None and build.prepared.native is not None
            native = build.prepared.native
            buffers = [
                place[a] if static is None else static.value(namespace)  # type: ignore[index]
                for a, static in zip(launch.args, build.static, strict=True)
            ]
            calls.append(NativeCall(native.address, tuple(buffers), native.numbers, native.brief))
            chain = chain or native.chain
        assert chain is not None
        name = run.call.text
        namespace[name] = _FirstRun(name, chain(calls, len(run.args)), namespace, called, token)


class _FirstRun:
    """Stands for a run until it has been called: then each kernel is called by itself, and held to its contract."""

    __slots__ = ("_called", "_name", "_namespace", "_run", "_token")

    def __init__(
        self,
        name: str,
        run: Callable[..., None],
        namespace: dict[str, Any],
        called: dict[str, Any],
        token: CancellationToken,
    ) -> None:
        self._name, self._run, self._namespace, self._called, self._token = name, run, namespace, called, token

    def __call__(self, *args: Any) -> None:
        self._namespace[f"{self._name}_body"](*args)
        self._called[self._name] = self._run
        if self._namespace.get(self._name) is self:  # else a stop has put its own there
            self._namespace[self._name] = self._run
            # a stop in between was overwritten just now: it sets the error first
            if self._token.error is not None:
                raise self._token.error
