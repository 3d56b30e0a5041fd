"""Variables that begin with the values of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError, NotFoundError, ShapeError, did_you_mean

from graphdock_tf1.train.checkpoint_reader import CheckpointReader, checkpoint_path
from graphdock_tf1.variables import stored as _stored


def init_from_checkpoint(ckpt_dir_or_file: str, assignment_map: Mapping[str, Any]) -> None:
    """Let variables begin with values of a checkpoint. Run an initializer that is made afterwards.

    Args:
      ckpt_dir_or_file: a checkpoint, or a folder whose last one is meant.
      assignment_map: what of the checkpoint -> what of the default graph. A name goes to a Variable, a PartitionedVariable, a list
        of the parts of one, or the name of a variable that ``get_variable`` made. A scope, which ends with a slash, goes to a
        scope: every variable in that one is found under the same name in the other. ``"/"`` is the scope around all.

    Raises:
      NotFoundError: there is no such checkpoint, no such variable in it, or none in the graph.
      ShapeError, DTypeError: a variable has another shape or dtype. DataLossError: the checkpoint is damaged.
    """
    path = checkpoint_path(ckpt_dir_or_file)
    reader = CheckpointReader(path)
    held, kinds = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    stored = _stored.stored_variables()
    for saved, target in sorted(assignment_map.items()):
        variable = stored.get(target) if isinstance(target, str) else target
        if variable is not None:
            _begin(variable, saved, held, kinds, path)
            continue
        if not saved.endswith("/") or not target.endswith("/"):
            raise NotFoundError(
                f"init_from_checkpoint: the graph has no variable {target!r}",
                hint=did_you_mean(target, stored) or "a scope ends with a slash: 'scope/' goes to 'other_scope/'",
            )
        for name in sorted(stored):
            if target == "/" or name.startswith(target):
                below = name if target == "/" else name.removeprefix(target)
                _begin(stored[name], below if saved == "/" else saved + below, held, kinds, path)


def _begin(variable: Any, saved: str, held: Mapping[str, Sequence[int]], kinds: Mapping[str, Any], path: str) -> None:
    """Let one variable begin with a value of the checkpoint."""
    parts = list(variable) if isinstance(variable, _tf.PartitionedVariable | list | tuple) else [variable]
    if not parts or not all(isinstance(p, _tf.Variable) for p in parts):
        raise InvalidArgumentError("init_from_checkpoint: a name goes to variables", got=repr(variable))
    if saved not in held:
        raise NotFoundError(
            f"init_from_checkpoint: the checkpoint {path!r} has no variable {saved!r}, which {parts[0].name} is to begin with",
            hint=did_you_mean(saved, held),
        )
    for part in parts:
        whole = part._save_slice_info if len(parts) > 1 or variable is not part else None
        shape = part.shape.as_list() if whole is None else whole.full_shape
        if part.shape.is_fully_defined() and shape != list(held[saved]):
            raise ShapeError(
                f"init_from_checkpoint: {part.name} has another shape than {saved!r} of the checkpoint {path!r}",
                expected=str(shape),
                got=str(list(held[saved])),
            )
        if part.dtype is not kinds[saved]:
            raise DTypeError(
                f"init_from_checkpoint: {part.name} has another dtype than {saved!r} of the checkpoint {path!r}",
                expected=part.dtype.name,
                got=kinds[saved].name,
            )
        with _ops.init_scope(), _tf.name_scope(None), _tf.device(part.device or None):
            value = _ops.apply_op(
                "RestoreV2",
                name=f"{part.op.name}/checkpoint_initializer",
                prefix=path,
                tensor_names=[saved],
                shape_and_slices=["" if whole is None else whole.spec],
                dtypes=[part.dtype],
                shapes=[[int(d) for d in part.shape.as_list()] if part.shape.is_fully_defined() else None],
            )
            _stored.set_initial_value(part, value if isinstance(value, _tf.Tensor) else value[0])
