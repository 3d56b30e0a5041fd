"""Tools that commands of plugins are given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from graphdock.contracts.command import CommandTools, ProgramStep
from graphdock.contracts.command_line import output


class Tools(CommandTools):
    """The tools of a command line. Programs are loaded once each, however often they are asked for."""

    def __init__(self) -> None:
        self._programs: dict[str, tuple[ProgramStep, Any]] = {}

    def config(self, **config: Any) -> Any:
        from graphdock.config.session_config import effective_config

        return effective_config(None, config)

    def explain(self, target: str, **config: Any) -> list[Any]:
        if target not in self._programs:
            self._programs[target] = _program(target)
        program, initializer = self._programs[target]
        wanted = [(program.fetches, program.feeds)] + [(initializer, None)] * bool(initializer.control_inputs)
        with _session(program, self.config(**config)) as session:
            return [session.explain(fetches, feeds) for fetches, feeds in wanted]

    def session(self, target: str, **config: Any) -> tuple[Any, ProgramStep]:
        from graphdock.cli.target import check_fed

        effective = self.config(**config)
        program, initializer = _program(target)
        check_fed(target, program)
        session = _session(program, effective)
        try:
            session.run(initializer)
        except BaseException:
            session.close()
            raise
        return session, program

    def table(self, head: Sequence[str], rows: Iterable[Sequence[Any]], right: Iterable[str] = ()) -> str:
        return output.table(head, rows, right)


def _program(target: str) -> tuple[ProgramStep, Any]:
    """A program, and what gives its variables their initial values."""
    from graphdock.cli.target import build
    from graphdock.variables.initialization import global_variables_initializer

    program = build(target)
    with program.graph.as_default():
        return program, global_variables_initializer()


def _session(program: ProgramStep, config: Any) -> Any:
    from graphdock.session.session import Session

    return Session(graph=program.graph, config=config)
