"""What commands of plugins are given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from graphdock.cli.target import build, check_fed
from graphdock.contracts.command import CommandTools, ProgramStep
from graphdock.contracts.command_line import output

__all__ = ["Tools"]


class Tools(CommandTools):
    """The tools of a command line. Programs are loaded once each, however often they are asked for."""

    def __init__(self) -> None:
        self._steps: dict[str, list[Any]] = {}

    def config(self, **config: Any) -> Any:
        from graphdock.config.session_config import effective_config

        return effective_config(None, config)

    def explain(self, target: str, **config: Any) -> list[Any]:
        from graphdock.session.session import Session
        from graphdock.variables.initialization import global_variables_initializer

        if target not in self._steps:
            step = build(target)
            with step.graph.as_default():
                initializer = global_variables_initializer()
            wanted = [(step.fetches, step.feeds)] + [(initializer, None)] * bool(initializer.control_inputs)
            self._steps[target] = [step.graph, wanted]
        graph, wanted = self._steps[target]
        with Session(graph=graph, config=self.config(**config)) as session:
            return [session.explain(fetches, feeds) for fetches, feeds in wanted]

    def session(self, target: str, **config: Any) -> tuple[Any, ProgramStep]:
        from graphdock.session.session import Session
        from graphdock.variables.initialization import global_variables_initializer

        effective = self.config(**config)
        program = build(target)
        with program.graph.as_default():
            initializer = global_variables_initializer()
        check_fed(target, program)
        session = Session(graph=program.graph, config=effective)
        try:
            session.run(initializer)
        except BaseException:
            session.close()
            raise
        return session, program

    def table(self, head: Sequence[str], rows: Iterable[Sequence[Any]], right: Iterable[str] = ()) -> str:
        return output.table(head, rows, right)
