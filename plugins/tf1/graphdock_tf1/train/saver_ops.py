"""The operations of a Saver, with TensorFlow's names: ``save/Const``, ``save/SaveV2``, ``save/restore_all``."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Sequence
from typing import Any

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError

from graphdock_tf1.cluster.device_spec import DeviceSpec
from graphdock_tf1.train.saveables import VariableSaveable
from graphdock_tf1.train.saver_def import SaverDef

#: Bytes of variables that one operation saves. Those of a device are all in host memory while it runs, and none before or after; so
#: this is what saving a model takes of it, however large the model is.
PORTION = 256 << 20
#: What a sharded save puts behind the path for the files of its parts.
_PART = os.path.join("_temp", "part")
#: Name scope of what tells whether tasks have a common folder, and what is put behind the path for the file that they look for.
PROBE, PROBE_FILE = "probe", ".probe.tmp"


def add_saver_ops(
    saveables: Sequence[Any],
    name: str | None,
    filename: str | None,
    reshape: bool,
    sharded: bool,
    restore_sequentially: bool,
) -> SaverDef:
    """Add what saves and restores these objects to the default graph; returns how it is called.

    Args:
      name: name scope; default ``"save"``. ``filename``: what is saved to when no path is fed.
    """
    with _ops.init_scope(), _tf.name_scope(name or "save"):
        path = _tf.placeholder_with_default(filename or "model", shape=[], name="filename")
        path = _tf.placeholder_with_default(path, shape=[], name="Const")
        shards = _by_device(saveables) if sharded else [("", list(saveables))]
        parts = [(device, part) for device, group in shards for part in _portions(group)]
        if sharded or len(parts) > 1:
            saved = _save_shards(path, parts)
            _add_probe(path, {device for device, _ in parts})
        else:
            with _tf.control_dependencies([_save(path, saveables)]):
                saved = _tf.identity(path, name="control_dependency")
        restored = _restore(path, [group for _, group in shards], reshape, restore_sequentially)
    return SaverDef(path.name, saved.name, restored.name, sharded=sharded)


def _portions(saveables: Sequence[Any]) -> list[list[Any]]:
    """Objects in lists of at most :data:`PORTION` bytes each, or of one object.

    What has no known shape counts as nothing, and so do strings, which lie in host memory anyway.
    """
    portions: list[list[Any]] = [[]]
    held = 0
    for saveable in saveables:
        nbytes = sum(map(_nbytes, saveable.specs))
        if portions[-1] and held + nbytes > PORTION:
            portions.append([])
            held = 0
        portions[-1].append(saveable)
        held += nbytes
    return portions


def _nbytes(spec: Any) -> int:
    shape = spec.tensor.shape
    if spec.dtype is dtypes.string or not shape.is_fully_defined():
        return 0
    return math.prod(int(d) for d in shape.as_list()) * int(spec.dtype.size)


def _names(specs: Sequence[Any], scope: str) -> dict[str, Any]:
    with _tf.name_scope(scope):
        return {
            "tensor_names": _tf.constant([s.name for s in specs], dtypes.string, [len(specs)], name="tensor_names"),
            "shape_and_slices": _tf.constant(
                [s.slice_spec for s in specs], dtypes.string, [len(specs)], name="shape_and_slices"
            ),
        }


def _save(path: Any, saveables: Sequence[Any]) -> Any:
    """The operation that saves to the fed path."""
    specs = [spec for saveable in saveables for spec in saveable.specs]
    with _tf.name_scope("SaveV2") as scope:
        tensors = [_ops.convert_to_tensor(spec.tensor) for spec in specs]
    return _ops.apply_op("SaveV2", name=scope, prefix=path, tensors=tensors, **_names(specs, scope))


def _save_shards(path: Any, shards: Sequence[tuple[str, Sequence[Any]]]) -> Any:
    """The path, after each part has been saved on its device, one after the other, and they have been made one checkpoint."""
    with _tf.device("/cpu:0"):  # devices have no strings
        begin = _ops.apply_op("StringJoin", inputs=[path, _PART], name="StringJoin")
        count = _tf.constant(len(shards), dtypes.int32, name="num_shards")
        names = [
            _ops.apply_op("ShardedFilename", basename=begin, shard=i, num_shards=count, name="ShardedFilename")
            for i in range(len(shards))
        ]
    saves = []
    for part, (device, group) in zip(names, shards, strict=True):
        with _tf.device(device or None):
            saves.append(_save(part, group))
    with _tf.control_dependencies(saves), _tf.device("/cpu:0"):
        merged = _ops.apply_op(
            "MergeV2Checkpoints",
            checkpoint_prefixes=_tf.stack(names, name="MergeV2Checkpoints/checkpoint_prefixes"),
            destination_prefix=path,
            name="MergeV2Checkpoints",
        )
    with _tf.control_dependencies([merged]):
        return _tf.identity(path, name="Identity")


def _add_probe(path: Any, devices: Collection[str]) -> None:
    """Add what several tasks that save parts run: one writes a file beside the path, and each tells whether it sees it."""
    tasks = sorted({task for task in map(_task_of, devices) if task is not None})
    if not tasks:
        return
    with _tf.name_scope(PROBE):
        with _tf.device("/cpu:0"):
            probe = _ops.apply_op("StringJoin", inputs=[path, PROBE_FILE], name="path")
            _ops.apply_op("WriteFile", filename=probe, contents=_tf.constant(b""), name="write")
        for number, task in enumerate(tasks):
            with _tf.device(task):
                _ops.apply_op("MatchingFiles", pattern=probe, name=f"seen_{number}")


def probe_ops(graph: Any, scope: str) -> tuple[Any, Any, list[Any]] | None:
    """The path of the probe of a Saver in a name scope, the operation that writes it, and those that look for it; None if there is
    none."""
    found = []
    while f"{scope}{PROBE}/seen_{len(found)}" in graph._by_name:
        found.append(graph.get_operation_by_name(f"{scope}{PROBE}/seen_{len(found)}"))
    if not found:
        return None
    path, write = (graph.get_operation_by_name(f"{scope}{PROBE}/{name}") for name in ("path", "write"))
    return path.outputs[0], write, found


def _restore(path: Any, shards: Sequence[Sequence[Any]], reshape: bool, sequentially: bool) -> Any:
    """The operation that restores these objects: all are read before the first one changes, or one after another is.

    The objects of each device, where they are sharded, are read on its task.
    """
    assigns: list[Any] = []
    if sequentially:
        for saveable in [saveable for shard in shards for saveable in shard]:
            with _tf.control_dependencies(assigns[-1:]):
                assigns += _assign([saveable], _read(path, [saveable], reshape), reshape)
        return _tf.group(*assigns, name="restore_all")
    read = [_read(path, shard, reshape) for shard in shards]
    with _tf.control_dependencies([tensors[0].op for tensors in read if tensors] if len(read) > 1 else []):
        for shard, tensors in zip(shards, read, strict=True):
            assigns += _assign(shard, tensors, reshape)
    return _tf.group(*assigns, name="restore_all")


def _read(path: Any, saveables: Sequence[Any], reshape: bool) -> list[Any]:
    """Part that a checkpoint has of objects of one device."""
    specs = [spec for saveable in saveables for spec in saveable.specs]
    if not specs:
        return []
    shapes = [
        _shape(spec) if isinstance(saveable, VariableSaveable) else None
        for saveable in saveables
        for spec in saveable.specs
    ]
    with _tf.name_scope("RestoreV2") as scope, _tf.device(_task_of(specs[0].device)):
        tensors = _ops.apply_op(
            "RestoreV2",
            name=scope,
            prefix=path,
            dtypes=[spec.dtype for spec in specs],
            shapes=shapes,
            reshape=reshape,
            **_names(specs, scope),
        )
    return [tensors] if isinstance(tensors, _tf.Tensor) else list(tensors)


def _assign(saveables: Sequence[Any], tensors: list[Any], reshape: bool) -> list[Any]:
    assigns = []
    for saveable in saveables:
        mine, tensors = tensors[: len(saveable.specs)], tensors[len(saveable.specs) :]
        wanted = [spec.tensor.shape for spec in saveable.specs] if reshape else None
        assigns.append(saveable.restore(mine, wanted))
    return assigns


def _task_of(device: str | None) -> Any:
    """The task of a device; None where it says none."""
    spec = DeviceSpec.from_string(device or "")
    return None if spec.job is None and spec.task is None else DeviceSpec(spec.job, spec.replica, spec.task).to_string()


def _shape(spec: Any) -> list[int] | None:
    shape = spec.tensor.shape
    return [int(d) for d in shape.as_list()] if shape.is_fully_defined() else None


def _by_device(saveables: Sequence[Any]) -> list[tuple[str, list[Any]]]:
    """The objects of each device, in order of the devices' names.

    Raises:
      InvalidArgumentError: the tensors of an object are on several devices.
    """
    groups: dict[str, list[Any]] = {}
    for saveable in saveables:
        devices = {spec.device or "" for spec in saveable.specs}
        if len(devices) > 1:
            raise InvalidArgumentError(
                f"the tensors of {saveable.name!r} are on several devices, so that it has no shard",
                got=", ".join(sorted(devices)),
            )
        groups.setdefault("".join(devices), []).append(saveable)
    return sorted(groups.items())
