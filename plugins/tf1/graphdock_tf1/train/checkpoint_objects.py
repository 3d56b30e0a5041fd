"""Checkpoint: saves variables under the names by which objects hold them, not under those that they have in the graph."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import graphdock as _tf
from graphdock.errors import ArgumentTypeError, FailedPreconditionError, did_you_mean

from graphdock_tf1.train.checkpoint_reader import CheckpointReader
from graphdock_tf1.train.checkpoint_state import write_state
from graphdock_tf1.train.optimizer import Optimizer
from graphdock_tf1.train.saver import Saver

_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
_SLOT = "/.OPTIMIZER_SLOT/"
_COUNTER = "save_counter" + _VALUE
#: What TensorFlow's own checkpoints of this kind have besides.
_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


class Checkpoint:
    """A group of named objects that are saved and restored together.

        checkpoint = tf.train.Checkpoint(weights=w, optimizer=optimizer)
        path = checkpoint.save("logs/model", session=sess)
        checkpoint.restore(path).initialize_or_restore(sess)

    Objects are Variables, PartitionedVariables, optimizers, other Checkpoints, and lists, tuples and dicts of all these. More may
    be set as attributes. A variable that is held in several places is saved once, under its shortest name. The names are
    TensorFlow's: it reads none of these files, but its files of this kind are read here.

    Raises:
      ArgumentTypeError: an object is of another kind.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._counter: Any = None
        self._counting: Any = None
        self._is_set: Any = None
        self._savers: dict[tuple[tuple[str, Any], ...], Saver] = {}
        for name, item in kwargs.items():
            setattr(self, name, item)

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            _check(name, value)
        object.__setattr__(self, name, value)

    @property
    def save_counter(self) -> _tf.Variable:
        """A Variable that counts calls of :meth:`save`; made when it is asked for, saved with the rest."""
        if self._counter is None:
            with _tf.name_scope(None):
                self._counter = _tf.Variable(0, trainable=False, name="save_counter", dtype=_tf.int64)
            self._is_set = _tf.is_variable_initialized(self._counter)
            self._counting = self._counter.assign_add(1, read_value=False)
        return self._counter

    def write(self, file_prefix: str, session: Any = None) -> str:
        """Save as the checkpoint of this name; nothing is counted, and no list written. Returns the name.

        Args:
          session: default: the default session.

        Raises:
          as ``Saver.save``.
        """
        path = os.fsdecode(file_prefix)
        held = self._held()
        self._saver(held).save(_session(session), path, write_meta_graph=False, write_state=False)
        return path

    def save(self, file_prefix: str, session: Any = None) -> str:
        """Save as ``file_prefix-1``, then ``-2`` and so on, and note that as the folder's last checkpoint; returns its name."""
        path = self.write(f"{os.fsdecode(file_prefix)}-{self._count(session)}", session)
        write_state(os.path.dirname(path), path, [path], None, True)
        return path

    def restore(self, save_path: str | None) -> RestoreStatus:
        """Find out what of a checkpoint belongs where. The values are taken over by what this returns, in a session.

        Args:
          save_path: None for no checkpoint: all is initialised then.

        Raises:
          NotFoundError: there is no such checkpoint. DataLossError: it is damaged.
        """
        _ = self.save_counter
        held = self._held()
        if save_path is None:
            return RestoreStatus(self, held, None, frozenset())
        path = os.fsdecode(save_path)
        names = CheckpointReader(path).get_variable_to_shape_map()
        return RestoreStatus(self, held, path, frozenset(names) - {_GRAPH})

    def _count(self, session: Any) -> int:
        """Count one more save; returns its number. The counter begins with 0 where nothing was restored."""
        sess, counter = _session(session), self.save_counter
        if not sess.run(self._is_set):
            sess.run(counter.initializer)
        sess.run(self._counting)
        return int(sess.run(counter))

    def _held(self) -> dict[str, Any]:
        """Name in a checkpoint -> variable, the shortest names first."""
        found: dict[str, Any] = {}
        seen: dict[int, str] = {}
        optimizers: list[tuple[str, Optimizer]] = []
        level: list[tuple[str, Any]] = list(_children("", self))
        while level:
            below: list[tuple[str, Any]] = []
            for path, item in level:
                if id(item) in seen:
                    continue
                seen[id(item)] = path
                if isinstance(item, _tf.Variable | _tf.PartitionedVariable):
                    found[path + _VALUE] = item
                elif isinstance(item, Optimizer):
                    optimizers.append((path, item))
                    found.update({f"{path}/{_escaped(name)}{_VALUE}": v for name, v in item._non_slot_variables()})
                else:
                    below += _children(path + "/", item)
            level = below
        variables = [(key.removesuffix(_VALUE), v) for key, v in found.items() if isinstance(v, _tf.Variable)]
        for path, optimizer in optimizers:
            for owner, variable in variables:
                for slot in optimizer.get_slot_names():
                    made = optimizer.get_slot(variable, slot)
                    if made is not None:
                        found[f"{owner}{_SLOT}{path}/{_escaped(slot)}{_VALUE}"] = made
        if self._counter is not None:
            found[_COUNTER] = self._counter
        return found

    def _saver(self, held: Mapping[str, Any]) -> Saver:
        """Return what saves and restores these, made once."""
        key = tuple(held.items())
        if key not in self._savers:
            self._savers[key] = Saver(dict(held), max_to_keep=None)
        return self._savers[key]


class RestoreStatus:
    """Match of a checkpoint with objects; its methods take the values over, or refuse where something has no counterpart."""

    def __init__(self, checkpoint: Checkpoint, held: dict[str, Any], path: str | None, names: frozenset[str]) -> None:
        self._checkpoint = checkpoint
        self._held = held
        self._path = path
        self._names = names

    def run_restore_ops(self, session: Any = None) -> None:
        """Set all variables that the checkpoint has; the others stay as they are.

        Raises:
          FailedPreconditionError: there is no checkpoint. And as ``Saver.restore``.
        """
        if self._path is None:
            raise FailedPreconditionError("there is no checkpoint to restore: the path is None")
        found = {name: v for name, v in self._held.items() if name in self._names}
        if found:
            self._checkpoint._saver(found).restore(_session(session), self._path)

    def initialize_or_restore(self, session: Any = None) -> None:
        """Set all variables that the checkpoint has, and initialise the others."""
        rest = [v for name, v in self._held.items() if name not in self._names]
        parts = [p for v in rest for p in (v if isinstance(v, _tf.PartitionedVariable) else [v])]
        _session(session).run([p.initializer for p in parts])
        if self._path is not None:
            self.run_restore_ops(session)

    def assert_existing_objects_matched(self) -> RestoreStatus:
        """Refuse a variable that the checkpoint has no value for; returns this object.

        Raises:
          AssertionError: there is one; names it, and near names.
        """
        missing = sorted(set(self._held) - self._names - {_COUNTER})  # write() counts nothing
        if missing:
            hint = did_you_mean(missing[0], self._names)
            raise AssertionError(
                f"the checkpoint {self._path!r} has no {', '.join(missing)}" + (f"; {hint}" if hint else "")
            )
        return self

    def assert_consumed(self) -> RestoreStatus:
        """Refuse a value, too, that belongs to no variable; returns this object.

        Raises:
          AssertionError: there is one; names it.
        """
        self.assert_existing_objects_matched()
        left = sorted(self._names - set(self._held))
        if left:
            raise AssertionError(f"nothing takes these values of the checkpoint {self._path!r}: {', '.join(left)}")
        return self

    def expect_partial(self) -> RestoreStatus:
        """Here nothing is said of values that are left over anyway; returns this object."""
        return self


def _session(given: Any) -> Any:
    session = _tf.get_default_session() if given is None else given
    if session is None:
        raise FailedPreconditionError(
            "a Checkpoint needs a session", hint="pass session=, or use 'with sess.as_default():'"
        )
    return session


def _escaped(name: str) -> str:
    """A name as a part of a path: TensorFlow's way."""
    return name.replace(".", "..").replace("/", ".S")


def _children(path: str, item: Any) -> Iterator[tuple[str, Any]]:
    """Return what an object holds, under its names."""
    if isinstance(item, Checkpoint):
        named = ((n, v) for n, v in vars(item).items() if not n.startswith("_"))
    elif isinstance(item, Mapping):
        named = ((str(n), v) for n, v in item.items())
    else:
        named = ((str(i), v) for i, v in enumerate(item))
    return ((path + _escaped(n), v) for n, v in named)


def _check(name: str, item: Any) -> None:
    if isinstance(item, Mapping | list | tuple):
        for each, value in item.items() if isinstance(item, Mapping) else enumerate(item):
            _check(f"{name}/{each}", value)
    elif not isinstance(item, _tf.Variable | _tf.PartitionedVariable | Optimizer | Checkpoint):
        raise ArgumentTypeError(
            f"a Checkpoint can't save {name!r}",
            expected="variables, optimizers, Checkpoints, lists or dicts of them",
            got=repr(item),
        )
