"""Saver: saves and restores the variables of a graph, and keeps the last few checkpoints of a run."""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import numbers
import os
import time
from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    GraphdockError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from graphdock_storage.checkpoint import discard_graph_drafts
from graphdock_storage.checkpoint.files import held, make_folder
from graphdock_storage.stores import system

from graphdock_tf1.train.checkpoint_files import (
    checkpoint_exists,
    get_checkpoint_mtimes,
    meta_graph_filename,
    remove_checkpoint,
)
from graphdock_tf1.train.checkpoint_state import write_state
from graphdock_tf1.train.global_step import global_step as _value_of_step
from graphdock_tf1.train.saveables import saveables_of
from graphdock_tf1.train.saver_def import SaverDef
from graphdock_tf1.train.saver_ops import PROBE_FILE, add_saver_ops, probe_ops

_log = logging.getLogger("graphdock")
#: What is put behind the path for the lock of a whole save, of all its parts.
_SAVING = ".save.lock"
#: Seconds for which another Saver's save to the same path is waited for.
_PATIENCE = 60.0


class Saver:
    """Saves and restores variables. Making one adds operations to the default graph, so make it when the variables are there.

    A checkpoint is written whole or not at all: a process that dies while it saves leaves the checkpoint before. ``save`` numbers
    them with a step, keeps the last ``max_to_keep`` of those that this Saver wrote, and lists them in the file ``checkpoint`` of
    their folder. See ``docs/checkpoints.md``.

    One thread at a time may save with a Saver.

    Args:
      var_list: Variables, PartitionedVariables and objects to save, or name in the checkpoint -> one of them; default: all global
        variables, and what is in ``GraphKeys.SAVEABLE_OBJECTS``.
      reshape: restore into a variable of another shape that has as many elements.
      sharded: a data file for each device.
      max_to_keep: how many checkpoints are kept; None or 0 for all, of which only the last is listed then.
      keep_checkpoint_every_n_hours: one of each so many hours is kept for good.
      name: name scope of the operations; default ``"save"``.
      restore_sequentially: read one variable at a time: slower, and at most one waits in memory.
      saver_def: a Saver's operations that are in the graph already; nothing is added then.
      builder: refused.
      defer_build: add the operations at :meth:`build`.
      allow_empty: a graph without variables is right; saving and restoring do nothing there.
      write_version: TensorFlow's file format; without effect, for there is one format here.
      pad_step_number: steps have eight digits at least.
      save_relative_paths: the list holds paths relative to the folder, which may then be moved.
      filename: where the operations save to when they are run without a path.

    Raises:
      InvalidArgumentError: no variables, or two of one name. ArgumentTypeError: ``var_list`` holds something else.
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: SaverDef | None = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int = SaverDef.V2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:
        if defer_build and var_list is not None:
            raise InvalidArgumentError(
                "Saver: with defer_build the variables are looked up by build(); give no var_list"
            )
        if builder is not None:
            raise InvalidArgumentError(
                "Saver: the operations are graphdock's own; a builder can't be given", got=repr(builder)
            )
        if saver_def is not None and not isinstance(saver_def, SaverDef):
            raise ArgumentTypeError("Saver: saver_def must be a SaverDef", got=repr(saver_def))
        self.saver_def = saver_def
        self._var_list = var_list
        self._reshape = reshape
        self._sharded = sharded
        self._max_to_keep = max_to_keep
        self._hours = keep_checkpoint_every_n_hours
        self._name = name
        self._sequentially = restore_sequentially
        self._allow_empty = allow_empty
        self._version = write_version
        self._pad = pad_step_number
        self._relative = save_relative_paths
        self._filename = filename
        self._is_empty = False
        self._is_built = False
        self._next_kept = math.inf
        #: The graph that was written last, its version then, and its GraphDef.
        self._graph: tuple[Any, int, Any] | None = None
        #: Path and time of the checkpoints that are kept, oldest first.
        self._last: list[tuple[str, float]] = []
        #: Paths of checkpoints that are to be removed and, with their locks, could not be.
        self._left: list[str] = []
        if not defer_build:
            self.build()

    def build(self) -> None:
        """Add the operations to the default graph; nothing when they are there.

        Raises:
          InvalidArgumentError: the graph has no variables. And as the constructor.
        """
        if self._is_built:
            return
        if self.saver_def is None:
            saveables = saveables_of(self._var_list)
            if not saveables and not self._allow_empty:
                raise InvalidArgumentError("no variables to save", hint="make them first, or pass allow_empty=True")
            self._is_empty = not saveables
            if saveables:
                self.saver_def = add_saver_ops(
                    saveables, self._name, self._filename, self._reshape, self._sharded, self._sequentially
                )
                self.saver_def.max_to_keep = self._max_to_keep or 0
                self.saver_def.keep_checkpoint_every_n_hours = self._hours
                self.saver_def.version = self._version
        elif self._name:
            new = SaverDef()
            new.CopyFrom(self.saver_def)
            for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
                setattr(new, field, f"{self._name}/{getattr(new, field)}")
            self.saver_def = new
        self._is_built = True
        if self.saver_def is not None:
            self._next_kept = time.time() + self.saver_def.keep_checkpoint_every_n_hours * 3600

    # -- as data ----------------------------------------------------------------------------------------------------

    def as_saver_def(self) -> SaverDef | None:
        """The Saver as data."""
        return self.saver_def

    def to_proto(self, export_scope: str | None = None) -> SaverDef | None:
        """The Saver as data; None where its operations are not all in the scope that is given, which their names lose."""
        if export_scope is None or self.saver_def is None:
            return self.saver_def
        made = SaverDef()
        made.CopyFrom(self.saver_def)
        for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
            name = getattr(made, field)
            if not name.startswith(export_scope + "/"):
                return None
            setattr(made, field, name.removeprefix(export_scope + "/"))
        return made

    @staticmethod
    def from_proto(saver_def: SaverDef, import_scope: str | None = None) -> Saver:
        """The Saver of operations that are in the graph already, in a scope if one is given."""
        return Saver(saver_def=saver_def, name=import_scope)

    # -- what is kept -----------------------------------------------------------------------------------------------

    @property
    def last_checkpoints(self) -> list[str]:
        """The checkpoints of this Saver that it has not removed, oldest first."""
        return [path for path, _ in self._last]

    def set_last_checkpoints(self, last_checkpoints: Sequence[str]) -> None:
        """Say which checkpoints this Saver is to count as its own, oldest first. None of them will be kept for good."""
        self._last = [(path, math.inf) for path in _a_list(last_checkpoints)]

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: Sequence[tuple[str, float]]) -> None:
        """As :meth:`set_last_checkpoints`, with the time of each in seconds since 1970."""
        self._last = [(path, when) for path, when in _a_list(last_checkpoints_with_time)]

    def recover_last_checkpoints(self, checkpoint_paths: Sequence[str]) -> None:
        """Count those of these checkpoints that are there as this Saver's own, oldest first: after a restart."""
        found = [(path, get_checkpoint_mtimes([path])) for path in checkpoint_paths]
        self._last = [(path, times[0]) for path, times in found if times]

    def _record(self, path: str) -> list[tuple[str, float]]:
        """Put a new checkpoint behind the others; returns those that are to be removed."""
        kept = [item for item in self._last if item[0] != path]
        kept.append((path, time.time()))
        limit = self._max_to_keep
        if not limit or limit < 0:
            self._last = kept[-1:]
            return []
        self._last = kept[-limit:]
        return kept[:-limit]

    def _remove(self, old: Sequence[tuple[str, float]], meta_graph_suffix: str) -> None:
        """Remove checkpoints that are due, and those of earlier saves that could not be removed."""
        current = {path for path, _ in self._last}
        left = [path for path in self._left if path not in current]
        due = list(left)
        for path, when in old:
            if self._next_kept < when < math.inf:
                assert self.saver_def is not None
                self._next_kept += self.saver_def.keep_checkpoint_every_n_hours * 3600
            else:
                due.append(path)
        self._left = []
        for path in due:
            try:
                with held(path, suffix=_SAVING):
                    remove_checkpoint(path, meta_graph_suffix=meta_graph_suffix)
            except NotFoundError:
                continue  # with its folder
            except GraphdockError as error:
                if path not in left:
                    _log.warning("an old checkpoint stays until a later save: %s", error.message)
                self._left.append(path)
                continue
            if os.path.exists(path + _SAVING):  # the lock could not be removed
                self._left.append(path)

    # -- saving and restoring ---------------------------------------------------------------------------------------

    def save(
        self,
        sess: _tf.Session,
        save_path: str,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str | None:
        """Save the variables' values in a session. When this returns, the checkpoint is on the disk.

        Args:
          save_path: of the checkpoint. Its folder is made when the one around it is there.
          global_step: an integer, a Variable, a Tensor or its name: the path is then ``save_path-100``.
          latest_filename: name of the file that lists the checkpoints; default ``"checkpoint"``.
          write_state: write that file, and remove the oldest checkpoints.
          write_meta_graph: also write the graph, as ``save_path-100.meta``, for ``tf.train.import_meta_graph``. Without the library
            protobuf there is none, which is told once. ``meta_graph_suffix``: what its name ends with.
          strip_default_attrs, save_debug_info: taken for TensorFlow's sake.

        Returns:
          The path of the checkpoint, for :meth:`restore`; None for an empty Saver.

        Raises:
          ArgumentTypeError: ``sess`` is no session.
          InvalidArgumentError: ``latest_filename`` is a path, or ``save_path`` has its name.
          UninitializedError: a variable has no value. FailedPreconditionError: another one is writing that checkpoint, and did not
            end within the session's ``operation_timeout``, or a minute.
          NotFoundError, PermissionDeniedError, ResourceExhaustedError: the file system refuses; what was there is as it was.
        """
        self._check_built("save")
        if not isinstance(sess, _tf.Session | _tf.InteractiveSession):
            raise ArgumentTypeError("Saver.save needs a session", got=repr(sess))
        latest_filename = "checkpoint" if latest_filename is None else latest_filename
        if os.path.split(latest_filename)[0]:
            raise InvalidArgumentError("latest_filename must not contain path components", got=repr(latest_filename))
        path = os.fsdecode(save_path)
        if global_step is not None:
            step = global_step if isinstance(global_step, numbers.Integral) else _value_of_step(sess, global_step)
            path = f"{path}-{int(step):08d}" if self._pad else f"{path}-{int(step)}"
        elif os.path.basename(path) == latest_filename:
            raise InvalidArgumentError(
                f"latest_filename collides with save_path: {latest_filename!r} and {path!r}",
                hint="save under another name",
            )
        if self._is_empty:
            return None
        assert self.saver_def is not None
        self._check_folder(sess, path)
        fed = {self.saver_def.filename_tensor_name: os.fsencode(path)}
        limit = sess.config.operation_timeout
        patience = _PATIENCE if limit is None else limit
        if not write_state:  # who runs this need not see the folder
            sess.run(self.saver_def.save_tensor_name, fed)
        else:
            make_folder(os.path.dirname(path))
            with held(path, patience, _SAVING):
                sess.run(self.saver_def.save_tensor_name, fed)
            old = self._record(path)
            _write_state(self, os.path.dirname(path), path, latest_filename)
            self._remove(old, meta_graph_suffix)
        if write_meta_graph:
            make_folder(os.path.dirname(path))
            with held(path, patience, _SAVING):  # another chief may save this step too, or remove it
                self._write_graph(sess.graph, meta_graph_filename(path, meta_graph_suffix))
                discard_graph_drafts(path)
        return path

    def export_meta_graph(
        self,
        filename: str | None = None,
        collection_list: Sequence[str] | None = None,
        as_text: bool = False,
        export_scope: str | None = None,
        clear_devices: bool = False,
        clear_extraneous_savers: bool = False,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> Any:
        """The default graph with this Saver as a ``tf.MetaGraphDef``; see ``tf.train.export_meta_graph``."""
        return _tf.train.export_meta_graph(
            filename,
            saver_def=self.to_proto(export_scope),
            collection_list=collection_list,
            as_text=as_text,
            export_scope=export_scope,
            clear_devices=clear_devices,
            clear_extraneous_savers=clear_extraneous_savers,
        )

    def _write_graph(self, graph: Any, path: str) -> None:
        """Write the graph beside the checkpoint; its GraphDef is made anew only when it has grown."""
        try:
            if self._graph is None or self._graph[:2] != (graph, graph.version):
                self._graph = (graph, graph.version, graph.as_graph_def(add_shapes=True))
        except UnavailableError as error:
            _without_graphs(error.message)
            return
        _tf.train.export_meta_graph(path, graph_def=self._graph[2], saver_def=self.saver_def, graph=graph)

    def restore(self, sess: _tf.Session, save_path: str) -> None:
        """Set the variables in a session to the values of a checkpoint, of graphdock's own format or of TensorFlow's. They need not
        be initialised before. When this fails none of them has changed, unless the Saver restores sequentially. (Files that another
        program damages while they are read may leave variables without a value.)

        Raises:
          NotFoundError: there is no such checkpoint, or a variable is not in it. ShapeError, DTypeError: a variable is another one
            there. DataLossError: it is damaged. Each names path and variable.
        """
        self._check_built("restore")
        if self._is_empty:
            return
        if save_path is None:
            raise InvalidArgumentError(
                "there is no checkpoint to restore: the path is None",
                hint="tf.train.latest_checkpoint(folder) found none",
            )
        path = os.fsdecode(save_path)
        if not checkpoint_exists(path):
            hint = (
                f"{path!r} is a folder: restore tf.train.latest_checkpoint of it" if system(path).isdir(path) else None
            )
            raise NotFoundError(f"there is no checkpoint {path!r}", hint=hint)
        assert self.saver_def is not None
        _log.info("Restoring parameters from %s", path)
        sess.run(self.saver_def.restore_op_name, {self.saver_def.filename_tensor_name: os.fsencode(path)})

    def _check_folder(self, sess: Any, path: str) -> None:
        """Raise FailedPreconditionError where tasks that save parts do not see one folder; names them."""
        assert self.saver_def is not None
        scope = self.saver_def.filename_tensor_name.rpartition("/")[0]
        probe = probe_ops(sess.graph, f"{scope}/" if scope else "")
        if probe is None or not getattr(sess, "target", ""):
            return
        _, write, looks = probe
        own = f"{path}.{os.urandom(8).hex()}"  # another chief's Saver may look for its own at the same time
        fed = {self.saver_def.filename_tensor_name: os.fsencode(own)}
        system(path).makedirs(os.path.dirname(path) or os.curdir)
        try:
            sess.run(write, fed)
            seen = sess.run([look.outputs[0] for look in looks], fed)
        finally:
            with contextlib.suppress(FileNotFoundError):
                system(path).remove(own + PROBE_FILE)
        blind = [look.device for look, found in zip(looks, seen, strict=True) if not len(found)]
        if blind:
            raise FailedPreconditionError(
                f"a sharded save needs one folder that all tasks see: {os.path.dirname(path)!r} is not that of {', '.join(blind)}",
                hint="save into a folder that is mounted on all machines, or without sharded=True",
            )

    def _check_built(self, what: str) -> None:
        if not self._is_built:
            raise FailedPreconditionError(f"Saver.{what}: the operations are not there", hint="call build() first")


@functools.cache
def _without_graphs(reason: str) -> None:
    _log.warning("checkpoints are saved without their graphs: %s; or save with write_meta_graph=False", reason)


def _write_state(saver: Saver, folder: str, path: str, latest_filename: str) -> None:
    write_state(folder, path, saver.last_checkpoints, latest_filename, saver._relative)


def _a_list(given: Any) -> list[Any]:
    if not isinstance(given, list):
        raise ArgumentTypeError("the last checkpoints must be a list", got=repr(given))
    return given
