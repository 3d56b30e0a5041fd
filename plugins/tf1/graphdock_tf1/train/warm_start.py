"""``tf.train.warm_start``: variables begin with those of a checkpoint, also where their rows stand for other words."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.errors import NotFoundError, did_you_mean

from graphdock_tf1.train.checkpoint_reader import CheckpointReader, checkpoint_path
from graphdock_tf1.train.init_from_checkpoint import init_from_checkpoint
from graphdock_tf1.variables import stored as _stored


class VocabInfo(NamedTuple):
    """The words of a variable's rows or columns, now and in the checkpoint.

    Attributes:
      new_vocab: a file with a word per line. new_vocab_size: how many of them are meant.
      num_oov_buckets: rows behind them, for words that it has not: they begin with ``backup_initializer``.
      old_vocab: file of the checkpoint's words. old_vocab_size: how many of them; -1: all.
      backup_initializer: values of words that the checkpoint does not have; None: zeros.
      axis: 0: rows; 1: columns.
    """

    new_vocab: str
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: str
    old_vocab_size: int = -1
    backup_initializer: Any = None
    axis: int = 0


def warm_start(
    ckpt_to_initialize_from: str,
    vars_to_warm_start: Any = ".*",
    var_name_to_vocab_info: Mapping[str, VocabInfo] | None = None,
    var_name_to_prev_var_name: Mapping[str, str] | None = None,
) -> None:
    """Let variables of the default graph begin with a checkpoint's. Run an initializer that is made afterwards.

    Args:
      ckpt_to_initialize_from: a checkpoint, a folder whose last one is meant, or a SavedModel.
      vars_to_warm_start: a regular expression of names of trainable variables; a list of such of all variables, or of
        Variables; None: only those in ``var_name_to_vocab_info``.
      var_name_to_vocab_info: name -> what its rows or columns stand for.
      var_name_to_prev_var_name: name -> its name in the checkpoint.

    Raises:
      ValueError: a name in the last two is none of these variables, or ``vars_to_warm_start`` is no list or text. NotFoundError:
        the checkpoint is not there, or lacks a variable. ShapeError, DTypeError: a variable does not fit.
    """
    path = _path(os.fspath(ckpt_to_initialize_from))
    infos, names = dict(var_name_to_vocab_info or {}), dict(var_name_to_prev_var_name or {})
    variables = _chosen(vars_to_warm_start, infos)
    for what, given in (("var_name_to_prev_var_name", names), ("var_name_to_vocab_info", infos)):
        if unused := sorted(given.keys() - variables.keys()):
            hint = did_you_mean(unused[0], variables)
            raise ValueError(
                f"You provided the following variables in {what} that were not used: {unused}. Perhaps you misspelled them? "
                f"Here is the list of viable variable names: {sorted(variables)}" + (f". {hint}" if hint else "")
            )
    for name, parts in variables.items():
        saved = names.get(name, name)
        if name in infos:
            _begin_with_words(parts, saved, path, infos[name])
        else:
            init_from_checkpoint(path, {saved: parts if len(parts) > 1 else parts[0]})


def _path(given: str) -> str:
    inner = os.path.join(given, _tf.saved_model.VARIABLES_DIRECTORY, _tf.saved_model.VARIABLES_FILENAME)
    return checkpoint_path(inner if os.path.exists(f"{inner}.index") else given)


def _chosen(wanted: Any, infos: Mapping[str, VocabInfo]) -> dict[str, list[Any]]:
    """Name -> the variable, or its parts in order."""
    if wanted is None:
        found = [v for v in _tf.global_variables() if _whole_name(v) in infos]
    elif isinstance(wanted, str):
        found = _tf.get_collection(_tf.GraphKeys.TRAINABLE_VARIABLES, scope=wanted)
    elif isinstance(wanted, list):
        texts = [w for w in wanted if isinstance(w, str)]
        found = [v for w in texts for v in _tf.get_collection(_tf.GraphKeys.GLOBAL_VARIABLES, scope=w)]
        for each in (w for w in wanted if not isinstance(w, str)):
            found += list(each) if isinstance(each, _tf.PartitionedVariable | list) else [each]
    else:
        raise ValueError(f"`vars_to_warm_start must be a `list` or `str`.  Given type is {type(wanted)}")  # noqa: TRY004 - TensorFlow's
    grouped: dict[str, list[Any]] = {}
    for variable in dict.fromkeys(found):
        grouped.setdefault(_whole_name(variable), []).append(variable)
    return grouped


def _whole_name(variable: Any) -> str:
    whole = variable._save_slice_info
    return str(variable.op.name if whole is None else whole.full_name)


def _begin_with_words(parts: list[Any], saved: str, path: str, info: VocabInfo) -> None:
    """Let a variable begin with the checkpoint's rows or columns of the same words."""
    shapes = CheckpointReader(path).get_variable_to_shape_map()
    if saved not in shapes:
        raise NotFoundError(
            f"warm_start: the checkpoint {path!r} has no variable {saved!r}", hint=did_you_mean(saved, shapes)
        )
    known = {word: i for i, word in reversed(list(enumerate(_words(info.old_vocab, info.old_vocab_size))))}
    words = _words(info.new_vocab, info.new_vocab_size)
    places = np.array([*(known.get(word, -1) for word in words), *[-1] * info.num_oov_buckets], np.int64)
    for part in parts:
        whole, shape = part._save_slice_info, part.shape.as_list()
        offset = [0] * len(shape) if whole is None or len(parts) == 1 else list(whole.var_offset)
        at, length = offset[info.axis], shape[info.axis]
        mine = np.full(length, -1, np.int64)
        mine[: len(places[at : at + length])] = places[at : at + length]
        with _ops.init_scope(), _tf.name_scope(None), _tf.device(part.device or None):
            (held,) = _ops.apply_op(
                "RestoreV2",
                name=f"{part.op.name}/checkpoint_initializer",
                prefix=path,
                tensor_names=[saved],
                shape_and_slices=[""],
                dtypes=[part.dtype],
                shapes=[list(shapes[saved])],
            )
            other = 1 - info.axis
            cut = [slice(None)] * len(shape)
            cut[other] = slice(offset[other], offset[other] + shape[other])
            backup = info.backup_initializer or _tf.zeros_initializer()
            there = (mine >= 0).reshape([-1 if i == info.axis else 1 for i in range(len(shape))])
            value = _tf.where(
                np.broadcast_to(there, shape),
                _tf.gather(held[tuple(cut)], np.maximum(mine, 0), axis=info.axis),
                backup(shape, dtype=part.dtype),
            )
            _stored.set_initial_value(part, value)


def _words(file: str, size: int) -> list[str]:
    """The lines of a vocabulary file, at most so many; -1: all."""
    with _tf.gfile.GFile(os.fspath(file)) as lines:
        words = lines.read().splitlines()
    return words if size < 0 else words[:size]
