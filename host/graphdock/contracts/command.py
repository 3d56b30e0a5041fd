"""Commands of plugins: ``[command]`` of a manifest names a module, whose ``command`` is a Click command.

The command is called as ``graphdock NAME``, NAME being the plugin's, with a :class:`CommandTools` as the object of its context. A
plugin of several commands has a table ``[[command]]`` for each, with a ``name`` where that is not the plugin's. Options and output
that graphdock's own commands share are in :mod:`graphdock.contracts.command_line`::

    @click.command()
    @click.argument("target")
    @click.pass_obj
    def command(tools, target): ...

GraphdockErrors that it raises become one message and an exit status, as for graphdock's own commands.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["CommandTools", "ProgramStep"]


@dataclass(frozen=True)
class ProgramStep:
    """Step that a target of the command line names.

    Attributes:
      graph: the graph of the program.
      fetches: what would be fetched from it: a tensor, an operation, a variable, or any nested structure of them.
      feeds: the ``feed_dict``, where the program gives one.
    """

    graph: Any
    fetches: Any
    feeds: Mapping[Any, Any] | None = None


class CommandTools(ABC):
    """Services of graphdock for commands of plugins. Called from the command's own thread."""

    @abstractmethod
    def config(self, **config: Any) -> Any:
        """The SessionConfig that holds for the process, of which each field says by ``source`` where it comes from.

        Args:
          config: fields that the command line gives, as they are typed. Raises ConfigError where a value is wrong.
        """

    @abstractmethod
    def explain(self, target: str, **config: Any) -> list[Any]:
        """Plan a program's step, and the initial values of its variables where it has any; nothing runs.

        Args:
          target: ``module:name`` or ``path/to/file.py:name``, as for ``graphdock explain``. config: fields of a SessionConfig.

        Returns:
          An Explanation per plan, the step's first. Raises what loading the program and planning raise.
        """

    @abstractmethod
    def session(self, target: str, **config: Any) -> tuple[Any, ProgramStep]:
        """A session over a program's graph, its variables at their initial values, and the program's step, which can run in it.

        Args:
          target, config: as of :meth:`explain`. The caller closes the session.

        Raises:
          InvalidArgumentError: the step needs a placeholder that the program does not feed. And as :meth:`explain`.
        """

    @abstractmethod
    def table(self, head: Sequence[str], rows: Iterable[Sequence[Any]], right: Iterable[str] = ()) -> str:
        """Aligned text, as graphdock's own commands print it; columns named in ``right`` are aligned right."""
