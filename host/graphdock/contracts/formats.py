"""Formats of files: what plugins read and write graphs and checkpoints as.

A plugin whose manifest lists its ``hooks`` is imported only when one of its formats may be what is at hand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphdock.errors import UnimplementedError

__all__ = ["CheckpointFormat", "GraphFormat", "GraphRead", "ImportReport", "Missing"]


@dataclass(frozen=True, slots=True)
class Missing:
    """Nodes that can't be imported for one reason.

    Attributes:
      op: their op in the file. ``why``: empty where graphdock has no such op.
      nodes: their names.
    """

    op: str
    why: str
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        shown = ", ".join(self.nodes[:3]) + (f" and {len(self.nodes) - 3} more" if len(self.nodes) > 3 else "")
        return f"{self.op}{f' ({self.why})' if self.why else ''}: {shown}"


@dataclass(frozen=True, slots=True)
class ImportReport:
    """Outcome of an import: what was read of a graph, and what could not be.

    Attributes:
      nodes: how many nodes the file has. ``ops``: op of the file -> how many nodes of it were imported.
      missing: what graphdock does not have. ``left_out``: the nodes that need any of those.
    """

    nodes: int = 0
    ops: dict[str, int] = field(default_factory=dict)
    missing: Sequence[Missing] = ()
    left_out: frozenset[str] = frozenset()

    @property
    def complete(self) -> bool:
        """Return whether everything was imported."""
        return not self.missing

    def __str__(self) -> str:
        """Return what is missing, a line each."""
        if self.complete:
            return f"{self.nodes} nodes, all imported"
        lines = [f"  {m}" for m in self.missing]
        others = len(self.left_out) - sum(len(m.nodes) for m in self.missing)
        return "\n".join([f"{self.nodes} nodes; graphdock lacks", *lines, f"  and {others} nodes need one of these"])


@dataclass(frozen=True, slots=True)
class GraphRead:
    """A graph that was read.

    Attributes:
      data: the plain data of graphdock's JSON (``docs/graphs-on-disk.md``), but that a tensor may stand there as an array.
      report: what is not in it.
    """

    data: dict[str, Any]
    report: ImportReport


class GraphFormat(ABC):
    """A form of graphs: values in memory, files, or both.

    Methods may be called from any thread, several at once, under no lock of graphdock's. What they are given is data of strangers:
    they raise GraphdockErrors and nothing else, and run nothing of it.

    Attributes:
      name: what ``Graph.as_graph_def(form=...)`` and messages call it; no two formats of a process have one.
      summary: what it reads and writes, for people: ``"a GraphDef (.pb, .pbtxt)"``.
    """

    name: str
    summary: str

    def accepts(self, value: Any) -> bool:
        """Return whether a value that a program gives ``tf.import_graph_def`` is of this form. It costs no reading, and
        never raises.

        Asked of each format in the order of names, once per call, of what is no JSON of graphdock's.
        """
        return False

    def open(self, path: str, tags: Sequence[str] = ()) -> tuple[str, Any] | None:
        """A file's or folder's kind, for people, and the value in it, which :meth:`read` takes; None where it is of another form.

        Args:
          tags: which of several graphs in it. Raises: DataLossError: it is of this form, and damaged.
        """
        return None

    @abstractmethod
    def read(self, value: Any, ops: Any, mapped: Collection[str] = (), outputs: Sequence[str] = ()) -> GraphRead:
        """The graph of a value.

        Args:
          value: one that :meth:`accepts` or :meth:`open` took; it is not changed.
          ops: ``name in ops``, ``ops.get(name)``: the OpDefs that there are.
          mapped: names of tensors (``"x:0"``) that others will stand for, so that nothing behind them is needed.
          outputs: names of tensors or nodes: only what they need is read. Default: everything.
        """

    def write(self, graph: Any, add_shapes: bool = False) -> Any:
        """A value of a ``tf.Graph``, which another thread may extend meanwhile: operations are added, none is changed.

        Args:
          add_shapes: the shapes of outputs are wanted in it.
        """
        raise UnimplementedError(f"graphs are read from {self.name}, and not written")


class CheckpointFormat(ABC):
    """A form of checkpoints besides graphdock's own, to read.

    Called where a prefix names no checkpoint of graphdock's, from any thread: from one that runs a step, which may hold the step's
    variables then, or under no lock of graphdock's.

    Attributes:
      name: for messages; no two formats of a process have one.
    """

    name: str

    @abstractmethod
    def exists(self, prefix: str) -> bool:
        """Return whether a prefix names a checkpoint of this form. It looks at names and at a few bytes, and never raises."""

    @abstractmethod
    def open(self, prefix: str) -> Any:
        """The checkpoint that a prefix names, open, as ``docs/write-a-file-format.md`` says what one is.

        Called after :meth:`exists` said yes. Raises: DataLossError: it is damaged.
        """

    def samples(self, folder: str) -> Mapping[str, Mapping[str, Any]]:
        """Checkpoints that conformance holds the form to: prefix -> name -> array of what is in it.

        Called by conformance alone, which no form without samples can say anything of.

        Args:
          folder: an empty folder, below which they are written; the prefixes lie there.
        """
        return {}
