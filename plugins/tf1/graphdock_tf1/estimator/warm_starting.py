"""``tf.estimator.WarmStartSettings``: the checkpoint that a model's variables begin with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from graphdock_tf1.train.warm_start import VocabInfo


class _Fields(NamedTuple):
    ckpt_to_initialize_from: str
    vars_to_warm_start: Any
    var_name_to_vocab_info: Mapping[str, VocabInfo]
    var_name_to_prev_var_name: Mapping[str, str]


class WarmStartSettings(_Fields):
    """Arguments of ``tf.train.warm_start``, which an Estimator calls before it trains. Raises ValueError: no checkpoint."""

    __slots__ = ()

    def __new__(
        cls,
        ckpt_to_initialize_from: str,
        vars_to_warm_start: Any = ".*",
        var_name_to_vocab_info: Mapping[str, VocabInfo] | None = None,
        var_name_to_prev_var_name: Mapping[str, str] | None = None,
    ) -> WarmStartSettings:
        if not ckpt_to_initialize_from:
            raise ValueError("`ckpt_to_initialize_from` MUST be set in WarmStartSettings")
        return super().__new__(
            cls,
            ckpt_to_initialize_from,
            vars_to_warm_start,
            var_name_to_vocab_info or {},
            var_name_to_prev_var_name or {},
        )


def warm_start_settings(given: Any) -> WarmStartSettings | None:
    """Settings of ``warm_start_from``, which are settings or a path. Raises ValueError: neither."""
    if given is None or isinstance(given, WarmStartSettings):
        return given
    if isinstance(given, (str, os.PathLike)):
        return WarmStartSettings(os.fspath(given))
    raise ValueError(f"warm_start_from must be a string or a WarmStartSettings, instead got {type(given)}")
