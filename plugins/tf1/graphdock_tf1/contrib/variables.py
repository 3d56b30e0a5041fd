"""Variables of models: how contrib makes them and finds them again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError, NotFoundError, ShapeError, did_you_mean
from graphdock.typing import DTypeLike, ShapeLike, TensorLike

from graphdock_tf1.contrib.arg_scope import add_arg_scope

_KEYS = _tf.GraphKeys


@add_arg_scope
def variable(
    name: str,
    shape: ShapeLike = None,
    dtype: DTypeLike | None = None,
    initializer: Any = None,
    regularizer: Callable[[Any], Any] | None = None,
    trainable: bool = True,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    device: Any = None,
    partitioner: Callable[..., Any] | None = None,
    custom_getter: Callable[..., Any] | None = None,
    use_resource: bool | None = None,
) -> Any:
    """``tf.get_variable``, made on ``device``; other arguments are its."""
    getter = _tf.get_variable if custom_getter is None else custom_getter
    with _tf.device(device or ""):
        return getter(
            name,
            shape=shape,
            dtype=dtype,
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
            collections=list(dict.fromkeys(collections or [_KEYS.GLOBAL_VARIABLES])),
            partitioner=partitioner,
        )


@add_arg_scope
def model_variable(
    name: str,
    shape: ShapeLike = None,
    dtype: DTypeLike = dtypes.float32,
    initializer: Any = None,
    regularizer: Callable[[Any], Any] | None = None,
    trainable: bool = True,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    device: Any = None,
    partitioner: Callable[..., Any] | None = None,
    custom_getter: Callable[..., Any] | None = None,
    use_resource: bool | None = None,
) -> Any:
    """:func:`variable`, also in ``GraphKeys.MODEL_VARIABLES``."""
    keys = [*(collections or []), _KEYS.GLOBAL_VARIABLES, _KEYS.MODEL_VARIABLES]
    return variable(
        name,
        shape,
        dtype,
        initializer,
        regularizer,
        trainable,
        keys,
        caching_device,
        device,
        partitioner,
        custom_getter,
    )


def add_model_variable(var: _tf.Variable) -> None:
    """Put a variable into ``GraphKeys.MODEL_VARIABLES``, once."""
    if not any(var is v for v in _tf.get_collection(_KEYS.MODEL_VARIABLES)):
        _tf.add_to_collection(_KEYS.MODEL_VARIABLES, var)


def local_variable(
    initial_value: Any, validate_shape: bool = True, name: str | None = None, use_resource: bool | None = None
) -> _tf.Variable:
    """A variable of this process, that is not trained."""
    return _tf.Variable(
        initial_value, trainable=False, collections=[_KEYS.LOCAL_VARIABLES], validate_shape=validate_shape, name=name
    )


def global_variable(
    initial_value: Any, validate_shape: bool = True, name: str | None = None, use_resource: bool | None = None
) -> _tf.Variable:
    """A variable that savers save, that is not trained."""
    return _tf.Variable(initial_value, trainable=False, validate_shape=validate_shape, name=name)


# -- finding them again ---------------------------------------------------------------------------------------------


def get_variables(
    scope: str | _tf.VariableScope | None = None, suffix: str | None = None, collection: str = _KEYS.GLOBAL_VARIABLES
) -> list[Any]:
    """Variables of a collection.

    Args:
      scope: what their names begin with, a regular expression or a VariableScope.
      suffix: what their names end with.
    """
    prefix = scope.name if isinstance(scope, _tf.VariableScope) else scope
    if suffix is not None:
        prefix = f"{prefix or ''}.*{suffix if ':' in suffix else suffix + ':'}"
    return _tf.get_collection(collection, prefix)


def get_model_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """:func:`get_variables` of ``GraphKeys.MODEL_VARIABLES``."""
    return get_variables(scope, suffix, _KEYS.MODEL_VARIABLES)


def get_local_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """:func:`get_variables` of ``GraphKeys.LOCAL_VARIABLES``."""
    return get_variables(scope, suffix, _KEYS.LOCAL_VARIABLES)


def get_trainable_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """:func:`get_variables` of ``GraphKeys.TRAINABLE_VARIABLES``."""
    return get_variables(scope, suffix, _KEYS.TRAINABLE_VARIABLES)


def get_variables_by_suffix(suffix: str, scope: Any = None) -> list[Any]:
    """Variables whose names end with ``suffix``."""
    return get_variables(scope=scope, suffix=suffix)


def get_variables_by_name(given_name: str, scope: Any = None) -> list[Any]:
    """Variables whose last name is ``given_name``."""
    return get_variables(scope=scope, suffix=f"/{given_name}:|^{given_name}:")


def get_unique_variable(var_op_name: str) -> Any:
    """The variable whose operation has that full name.

    Raises:
      NotFoundError: there is none. InvalidArgumentError: several.
    """
    names = [v.op.name for v in _tf.global_variables()]
    found = [v for v in _tf.get_collection(_KEYS.GLOBAL_VARIABLES, var_op_name) if v.op.name == var_op_name]
    if not found:
        raise NotFoundError(f"there is no variable {var_op_name!r}", hint=did_you_mean(var_op_name, names))
    if len(found) > 1:
        raise InvalidArgumentError(f"there are {len(found)} variables {var_op_name!r}")
    return found[0]


def get_variable_full_name(var: Any) -> str:
    """The name that a checkpoint has for it: that of the whole, for a part."""
    whole = getattr(var, "_save_slice_info", None)
    return str(whole.full_name if whole is not None else var.op.name)


def get_variables_to_restore(include: Sequence[str] | None = None, exclude: Sequence[str] | None = None) -> list[Any]:
    """Variables below the scopes ``include`` (default: all) that are not below the scopes ``exclude``."""
    for words in (include, exclude):
        if words is not None and not isinstance(words, list | tuple):
            raise InvalidArgumentError("include and exclude are lists of scopes", got=repr(words))
    found = get_variables() if include is None else [v for s in include for v in get_variables(s)]
    left = {id(v) for s in exclude or () for v in get_variables(s)}
    return [v for v in found if id(v) not in left]


def filter_variables(
    var_list: Iterable[Any],
    include_patterns: Sequence[str] | None = None,
    exclude_patterns: Sequence[str] | None = None,
    reg_search: bool = True,
) -> list[Any]:
    """Variables whose operation's name has one of the first patterns in it (``reg_search``: anywhere) and none of the second."""
    match = re.search if reg_search else re.match
    found = list(var_list)
    if include_patterns is not None:
        found = [v for v in found if any(match(p, v.op.name) for p in include_patterns)]
    return [v for v in found if not any(match(p, v.op.name) for p in exclude_patterns or ())]


def assert_or_get_global_step(graph: _tf.Graph | None = None, global_step_tensor: Any = None) -> Any:
    """The given global step after a check, or the graph's."""
    if global_step_tensor is None:
        return _tf.train.get_global_step(graph)
    _tf.train.assert_global_step(global_step_tensor)
    return global_step_tensor


# -- values from elsewhere ------------------------------------------------------------------------------------------


def assign_from_values(var_names_to_values: Mapping[str, TensorLike]) -> tuple[Any, dict[Any, Any]]:
    """An operation that sets variables by name, and what to feed with it.

    Raises:
      NotFoundError: there is no such variable. ShapeError: a value of another shape.
    """
    feeds, made = {}, []
    for name, value in var_names_to_values.items():
        var = get_unique_variable(name)
        array = _as_array(value, var)
        holder = _tf.placeholder(var.dtype, var.shape)
        feeds[holder] = array
        made.append(var.assign(holder, read_value=False))
    return _tf.group(*made), feeds


def assign_from_values_fn(var_names_to_values: Mapping[str, TensorLike]) -> Callable[[Any], None]:
    """A function of a session that sets variables by name; see :func:`assign_from_values`."""
    assign, feeds = assign_from_values(var_names_to_values)

    def callback(session: Any) -> None:
        session.run(assign, feeds)

    return callback


def assign_from_checkpoint(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False
) -> tuple[Any, dict[Any, Any]]:
    """An operation that sets variables to the values of a checkpoint, and what to feed with it.

    Args:
      model_path: a checkpoint.
      var_list: variables, or name in the checkpoint -> variable.
      ignore_missing_vars: leave out what the checkpoint does not have.

    Raises:
      NotFoundError: the checkpoint does not have a variable. ShapeError: a value of another shape.
    """
    reader = _tf.train.NewCheckpointReader(model_path)
    feeds, made = {}, []
    for name, var in _held(reader, var_list, ignore_missing_vars, model_path).items():
        holder = _tf.placeholder(var.dtype, var.shape)
        feeds[holder] = _as_array(reader.get_tensor(name), var)
        made.append(var.assign(holder, read_value=False))
    return _tf.group(*made), feeds


def assign_from_checkpoint_fn(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False, reshape_variables: bool = False
) -> Callable[[Any], None] | None:
    """A function of a session that restores variables; None where there are none to restore.

    Arguments as of :func:`assign_from_checkpoint`; ``reshape_variables`` lets values of another shape in, with as many elements.
    """
    reader = _tf.train.NewCheckpointReader(model_path)
    held = _held(reader, var_list, ignore_missing_vars, model_path)
    if not held:
        return None
    saver = _tf.train.Saver(held, reshape=reshape_variables)

    def callback(session: Any) -> None:
        saver.restore(session, model_path)

    return callback


def _held(reader: Any, var_list: Any, ignore_missing: bool, path: str) -> dict[str, Any]:
    wanted = dict(var_list) if isinstance(var_list, Mapping) else {get_variable_full_name(v): v for v in var_list}
    names = reader.get_variable_to_shape_map()
    missing = [name for name in wanted if name not in names]
    if missing and not ignore_missing:
        raise NotFoundError(
            f"the checkpoint {path} has no {missing[0]!r}",
            hint=did_you_mean(missing[0], names) or "ignore_missing_vars=True leaves out what is not there",
        )
    return {name: var for name, var in wanted.items() if name in names}


def _as_array(value: Any, var: Any) -> Any:
    array = value if hasattr(value, "shape") else _ops.convert_to_tensor(value, var.dtype)
    if not var.shape.is_compatible_with(list(array.shape)):
        raise ShapeError(f"a value for {var.op.name}", expected=str(var.shape), got=str(tuple(array.shape)))
    return value
