"""Objects of a Saver: variables, parts of variables, and objects of several tensors, each under its name in a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import ArgumentTypeError, InvalidArgumentError


class SaveSpec:
    """One tensor of a :class:`SaveableObject`.

    Args:
      tensor: what is saved; a Variable or Tensor, or a function that returns one.
      slice_spec: empty, or the shape of the whole and the slice, ``"5 2 0,3:-"``.
      name: in the checkpoint.
      dtype, device: of the tensor; a function's must be given.
    """

    def __init__(self, tensor: Any, slice_spec: str, name: str, dtype: Any = None, device: str | None = None) -> None:
        self._tensor = tensor
        self.slice_spec = slice_spec
        self.name = name
        self.dtype = _tf.as_dtype(tensor.dtype if dtype is None else dtype)
        self.device = device if device is not None else getattr(tensor, "device", "")

    @property
    def tensor(self) -> Any:
        return self._tensor() if callable(self._tensor) else self._tensor


class SaveableObject:
    """Unit that is saved and restored as one. A subclass says with :meth:`restore` what is done with values that were read.

    Args:
      op: what it stands for, a variable's operation for one; no two objects of a Saver have one.
      specs: its tensors.
      name: in the checkpoint.
    """

    def __init__(self, op: Any, specs: Sequence[SaveSpec], name: str) -> None:
        self.op = op
        self.specs = list(specs)
        self.name = name

    @property
    def device(self) -> str:
        return self.specs[0].device or "" if self.specs else ""

    def restore(self, restored_tensors: Sequence[_ops.Tensor], restored_shapes: Sequence[Any] | None) -> Any:
        """An operation that takes over the values of the specs, in their order.

        Args:
          restored_shapes: with ``reshape=True`` the shapes that they are to take, otherwise None.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how it is restored")


class VariableSaveable(SaveableObject):
    """A variable, or a part of one."""

    def __init__(self, var: _tf.Variable, slice_spec: str, name: str) -> None:
        super().__init__(var.op, [SaveSpec(var, slice_spec, name)], name)
        self.variable = var

    def restore(self, restored_tensors: Sequence[_ops.Tensor], restored_shapes: Sequence[Any] | None) -> Any:
        return self.variable.assign(restored_tensors[0], name="Assign", read_value=False)


def saveables_of(var_list: Any) -> list[Any]:
    """The saveable objects of what a Saver was given, in order of their names.

    Args:
      var_list: Variables, PartitionedVariables and SaveableObjects, or name in the checkpoint -> one of these, or -> the list of
        the parts of one; None for all global variables and what is in ``GraphKeys.SAVEABLE_OBJECTS``.

    Raises:
      ArgumentTypeError: something else stands there.
      InvalidArgumentError: two have one name, or one has two names.
    """
    if var_list is None:
        var_list = [*_tf.global_variables(), *_tf.get_collection(_tf.GraphKeys.SAVEABLE_OBJECTS)]
    named = dict(var_list) if isinstance(var_list, Mapping) else _named(var_list)
    made: list[Any] = []
    seen: dict[Any, str] = {}
    for name, item in sorted(named.items()):
        if not isinstance(name, str):
            raise ArgumentTypeError("a Saver's dict must map names to variables", got=repr(name))
        for saveable in _saveables(name, item):
            if saveable.op is not None and seen.setdefault(saveable.op, name) is not name:
                raise InvalidArgumentError(
                    f"the variable {saveable.op.name!r} stands under two names in a Saver's var_list",
                    got=f"{seen[saveable.op]!r} and {name!r}",
                )
            made.append(saveable)
    return made


def _named(var_list: Any) -> dict[str, Any]:
    """Name in the checkpoint -> what is saved; parts of one variable are a list."""
    if isinstance(var_list, str | bytes | _tf.Variable) or not hasattr(var_list, "__iter__"):
        raise ArgumentTypeError("a Saver's variables must be a dict or a list", got=repr(var_list))
    named: dict[str, Any] = {}
    parts: dict[str, list[Any]] = {}
    for item in var_list:
        for each in item if isinstance(item, _tf.PartitionedVariable) else [item]:
            whole = each._save_slice_info if isinstance(each, _tf.Variable) else None
            if whole is not None:
                parts.setdefault(whole.full_name, []).append(each)
                continue
            name = each.op.name if isinstance(each, _tf.Variable) else getattr(each, "name", None)
            if not isinstance(each, _tf.Variable) and not _is_saveable(each):
                raise ArgumentTypeError("a Saver saves variables", got=repr(each))
            if name in named:
                raise InvalidArgumentError(f"at least two variables have the same name: {name}")
            named[str(name)] = each
    for name in parts:
        if name in named:
            raise InvalidArgumentError(f"at least two variables have the same name: {name}")
    return named | parts


def _is_saveable(item: Any) -> bool:
    return isinstance(item, SaveableObject) or all(hasattr(item, a) for a in ("specs", "restore", "name", "op"))


def _saveables(name: str, item: Any) -> list[Any]:
    if isinstance(item, _tf.Variable):
        return [VariableSaveable(item, "", name)]
    if isinstance(item, _tf.PartitionedVariable | list | tuple):
        return [VariableSaveable(part, _slice_of(name, part), name) for part in item]
    if _is_saveable(item):
        return [item]
    raise ArgumentTypeError(f"a Saver saves variables; {name!r} is none", got=repr(item))


def _slice_of(name: str, part: Any) -> str:
    whole = part._save_slice_info if isinstance(part, _tf.Variable) else None
    if whole is None:
        raise ArgumentTypeError(
            f"the parts of {name!r} must be parts of one variable",
            got=repr(part),
            hint="a list stands for a PartitionedVariable",
        )
    return str(whole.spec)
