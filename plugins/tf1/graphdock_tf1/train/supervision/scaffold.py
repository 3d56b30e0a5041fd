"""Scaffold: the operations that make a session ready, and the Saver, found in the graph or added to it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import graphdock as _tf
from graphdock.errors import ArgumentTypeError, FailedPreconditionError

from graphdock_tf1.train.saver import Saver

_log = logging.getLogger("graphdock")


def initialize_locals() -> Any:
    """An operation that initialises local variables and tables."""
    tables = _tf.get_collection(_tf.GraphKeys.TABLE_INITIALIZERS)
    return _tf.group(_tf.local_variables_initializer(), *tables)


def tables_initializer(name: str = "init_all_tables") -> Any:
    """An operation that initialises the tables of the graph: what is in the collection ``TABLE_INITIALIZERS`` so far."""
    return _tf.group(*_tf.get_collection(_tf.GraphKeys.TABLE_INITIALIZERS), name=name)


def _part(name: str) -> Any:
    """A property: what was given of that name, or what finalizing found or made in its place."""

    def part(self: Scaffold) -> Any:
        return self._parts[name]

    return property(part)


class Scaffold:
    """The parts that a monitored session needs of a graph. What is not given is taken from the graph's collections by
    :meth:`finalize`, or made and put there.

    Args:
      init_op: initialises variables; collection ``INIT_OP``; default: all global variables. init_feed_dict: what it is fed.
      init_fn: called with this Scaffold and the session after ``init_op``. Neither is run where a checkpoint was restored.
      ready_op: a string vector with the names of variables that have no value; collection ``READY_OP``.
      ready_for_local_init_op: the same of those that must have one before ``local_init_op``; ``READY_FOR_LOCAL_INIT_OP``.
      local_init_op: run in every session, restored or not; ``LOCAL_INIT_OP``; default: local variables and tables.
        local_init_feed_dict: what it is fed.
      summary_op: a string tensor; ``SUMMARY_OP``; default: all summaries of the graph.
      saver: saves and restores; ``SAVERS``; default: all variables.
      copy_from_scaffold: one whose parts are used where none is given here.

    Raises:
      ArgumentTypeError: ``copy_from_scaffold`` is no Scaffold.
    """

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: Mapping[Any, Any] | None = None,
        init_fn: Callable[[Scaffold, Any], Any] | None = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        local_init_op: Any = None,
        summary_op: Any = None,
        saver: Saver | None = None,
        copy_from_scaffold: Scaffold | None = None,
        local_init_feed_dict: Mapping[Any, Any] | None = None,
    ) -> None:
        parts = {
            "init_op": init_op,
            "init_feed_dict": init_feed_dict,
            "user_init_fn": init_fn,
            "ready_op": ready_op,
            "ready_for_local_init_op": ready_for_local_init_op,
            "local_init_op": local_init_op,
            "summary_op": summary_op,
            "saver": saver,
            "local_init_feed_dict": local_init_feed_dict,
        }
        if copy_from_scaffold is not None:
            if not isinstance(copy_from_scaffold, Scaffold):
                raise ArgumentTypeError("copy_from_scaffold is not a Scaffold instance.", got=repr(copy_from_scaffold))
            others = copy_from_scaffold._parts
            parts = {name: others[name] if part is None else part for name, part in parts.items()}
        self._parts = parts

    def finalize(self) -> Scaffold:
        """Find or make what was not given, in the default graph, and finalize the graph; returns this Scaffold.

        Raises:
          FailedPreconditionError: a collection has several of what one is needed of.
        """
        keys, parts = _tf.GraphKeys, self._parts
        makers: dict[str, tuple[str, Callable[[], Any]]] = {
            "init_op": (keys.INIT_OP, lambda: _tf.group(_tf.global_variables_initializer())),
            "ready_op": (keys.READY_OP, _tf.report_uninitialized_variables),
            "ready_for_local_init_op": (
                keys.READY_FOR_LOCAL_INIT_OP,
                lambda: _tf.report_uninitialized_variables(_tf.global_variables()),
            ),
            "local_init_op": (keys.LOCAL_INIT_OP, initialize_locals),
            "summary_op": (keys.SUMMARY_OP, _tf.summary.merge_all),
            "saver": (keys.SAVERS, lambda: Saver(sharded=True, allow_empty=True)),
        }
        for name, (key, make) in makers.items():
            if parts[name] is None:
                parts[name] = Scaffold.get_or_default(name, key, make)
        parts["saver"].build()
        _tf.get_default_graph().finalize()
        _log.info("Graph was finalized.")
        return self

    init_op = _part("init_op")
    init_feed_dict = _part("init_feed_dict")
    ready_op = _part("ready_op")
    ready_for_local_init_op = _part("ready_for_local_init_op")
    local_init_op = _part("local_init_op")
    local_init_feed_dict = _part("local_init_feed_dict")
    summary_op = _part("summary_op")
    saver = _part("saver")

    @property
    def init_fn(self) -> Callable[[Any], Any] | None:
        """A function of the session; None where none was given."""
        given = self._parts["user_init_fn"]
        return None if given is None else lambda session: given(self, session)

    @staticmethod
    def get_or_default(arg_name: str, collection_key: str, default_constructor: Callable[[], Any]) -> Any:
        """The one item of a collection of the default graph; where it has none, a new one, which joins it.

        Raises:
          FailedPreconditionError: it has several.
        """
        found = _tf.get_collection(collection_key)
        if len(found) > 1:
            raise FailedPreconditionError(
                f'More than one item in the collection "{collection_key}"',
                got=str(len(found)),
                hint=f"say which one: tf.train.Scaffold({arg_name}=...)",
            )
        if found:
            return found[0]
        made = default_constructor()
        if made is not None:
            _tf.add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op() -> Any:
        """A new operation that initialises local variables and tables."""
        return initialize_locals()
