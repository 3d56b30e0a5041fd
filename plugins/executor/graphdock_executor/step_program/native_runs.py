"""Runs of launches of native code, each made one statement: Python calls once where it called many times.

A run stands in one block, and ends at whatever is no such launch. Buffers that are made for a step are made before its run.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphdock.contracts.queue import QueuedDevice

from graphdock_executor.lower.records import Build
from graphdock_executor.step_program.names import Name, Names, Operand
from graphdock_executor.step_program.statements import Block, Call, Launch, NativeRun, Statement, blocks_of

__all__ = ["join_launches"]


def join_launches(block: Block, builds: Mapping[Operand, Build], names: Names) -> list[NativeRun]:
    """Put a NativeRun in the place of each run of two and more launches, at every level.

    Args:
      builds: of the kernels that are native.
    """
    found: list[NativeRun] = []
    stack = [block]
    while stack:
        inner = stack.pop()
        inner.statements = _joined(inner.statements, builds, names, found)
        stack.extend([b for s in inner.statements for b in blocks_of(s)])
    return found


def _joined(
    statements: list[Statement], builds: Mapping[Operand, Build], names: Names, found: list[NativeRun]
) -> list[Statement]:
    result: list[Statement] = []
    run: list[Statement] = []
    known: set[Operand] = set()  # to the launches of the run

    def close() -> None:
        launches = [s for s in run if isinstance(s, Launch)]
        if len(launches) < 2:
            result.extend(run)
        else:
            result.extend([s for s in run if not isinstance(s, Launch)])
            moving = {a: None for s in launches for a, b in _buffers(s, builds[s.kernel]) if b is None}
            returns = tuple([r for s in launches for r in s.returns])
            args = tuple([a for a in moving if isinstance(a, Name) and a not in returns])
            first, name = launches[0], names.new("native run")
            joined = NativeRun(name, args, returns, Block(launches), node=first.node, device=first.device)
            found.append(joined)
            result.append(joined)
        run.clear()
        known.clear()

    for statement in statements:
        if isinstance(statement, Launch) and not known.isdisjoint(statement.returns):
            close()  # a loop's variable, which is another value from here on
        if _is_native(statement, builds) or run and _makes_a_buffer(statement):
            run.append(statement)
            known.update((*statement.args, *statement.returns) if isinstance(statement, Launch) else ())
        else:
            close()
            result.append(statement)
    close()
    return result


def _buffers(launch: Launch, build: Build) -> list[tuple[Operand, Name | None]]:
    """Each argument, with the name of the buffer that it is in every step, if it is one."""
    return list(zip(launch.args, build.static, strict=True))


def _is_native(statement: Statement, builds: Mapping[Operand, Build]) -> bool:
    """Return whether a launch only calls native code with buffers: none that is locked, looked up in the step, or returned
    where the kernel does not say its shape."""
    if (
        not isinstance(statement, Launch)
        or statement.kernel not in builds
        or isinstance(statement.device, QueuedDevice)
    ):
        return False
    build = builds[statement.kernel]
    assert build.prepared is not None and build.prepared.native is not None
    if statement.returns and build.prepared.native.sized is None:
        return False
    if statement.access is not None or len(statement.args) != len(build.static):
        return False
    return all(static is not None or isinstance(a, Name) for a, static in _buffers(statement, build))


def _makes_a_buffer(statement: Statement) -> bool:
    if not isinstance(statement, Call) or statement.args or statement.access is not None:
        return False
    return isinstance(statement.function, Name) and statement.function.meaning == "maker"
