"""TensorFlow's ConfigProto and what it is made of, and the SessionConfig that says the same.

A program may pass either wherever a session is configured. Each field that is set is translated, or means nothing here and is told
once, with the reason and what to write instead.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, ClassVar

from graphdock.locks import new_lock
from graphdock.passes.pipeline import PASSES
from graphdock.session.config import SessionConfig

from graphdock_tensorflow.message import Message

__all__ = ["ConfigProto", "GPUOptions", "GraphOptions", "OptimizerOptions", "translated"]

_log = logging.getLogger("graphdock")


class _Level(IntEnum):
    L1 = 0
    L0 = -1


class _Jit(IntEnum):
    DEFAULT = 0
    OFF = -1
    ON_1 = 1
    ON_2 = 2


class GPUOptions(Message):
    """``ConfigProto.gpu_options``. Memory is planned and taken as needed; ``SessionConfig(memory_limit=)`` bounds it."""

    FIELDS: ClassVar[Mapping[str, Any]] = {
        "per_process_gpu_memory_fraction": 0.0,
        "allow_growth": False,
        "allocator_type": "",
        "deferred_deletion_bytes": 0,
        "visible_device_list": "",
        "polling_active_delay_usecs": 0,
        "polling_inactive_delay_msecs": 0,
        "force_gpu_compatible": False,
    }


class OptimizerOptions(Message):
    """``ConfigProto.graph_options.optimizer_options``: which passes run; at the level ``L0`` none."""

    Level = _Level
    GlobalJitLevel = _Jit
    L0, L1 = _Level.L0, _Level.L1
    DEFAULT, OFF, ON_1, ON_2 = _Jit.DEFAULT, _Jit.OFF, _Jit.ON_1, _Jit.ON_2

    FIELDS: ClassVar[Mapping[str, Any]] = {
        "do_common_subexpression_elimination": False,
        "do_constant_folding": False,
        "max_folded_constant_in_bytes": 0,
        "do_function_inlining": False,
        "opt_level": 0,
        "global_jit_level": 0,
        "cpu_global_jit": False,
    }


class RewriterConfig(Message):
    """``ConfigProto.graph_options.rewrite_options``: TensorFlow's own graph rewriter, which is not here."""

    OFF, ON, DEFAULT, AGGRESSIVE, NO_MEM_OPT = 2, 1, 0, 3, 1

    FIELDS: ClassVar[Mapping[str, Any]] = {
        **dict.fromkeys(
            (
                "layout_optimizer",
                "constant_folding",
                "shape_optimization",
                "remapping",
                "arithmetic_optimization",
                "dependency_optimization",
                "loop_optimization",
                "function_optimization",
                "debug_stripper",
                "scoped_allocator_optimization",
                "pin_to_host_optimization",
                "implementation_selector",
                "auto_mixed_precision",
                "meta_optimizer_iterations",
                "min_graph_nodes",
                "memory_optimization",
                "meta_optimizer_timeout_ms",
            ),
            0,
        ),
        "disable_model_pruning": False,
        "disable_meta_optimizer": False,
        "memory_optimizer_target_node_name_scope": "",
        "fail_on_optimizer_errors": False,
        "optimizers": list,
    }


class GraphOptions(Message):
    """``ConfigProto.graph_options``."""

    FIELDS: ClassVar[Mapping[str, Any]] = {
        "enable_recv_scheduling": False,
        "optimizer_options": OptimizerOptions,
        "build_cost_model": 0,
        "build_cost_model_after": 0,
        "infer_shapes": False,
        "place_pruned_graph": False,
        "enable_bfloat16_sendrecv": False,
        "timeline_step": 0,
        "rewrite_options": RewriterConfig,
    }


class ConfigProto(Message):
    """TensorFlow 1's configuration of a session, accepted wherever a :class:`SessionConfig` is.

    Raises:
      ValueError, AttributeError: no such field. TypeError: a value of another type.
      ConfigError: where the session is made, a value that the SessionConfig refuses.
    """

    FIELDS: ClassVar[Mapping[str, Any]] = {
        "device_count": dict,
        "intra_op_parallelism_threads": 0,
        "inter_op_parallelism_threads": 0,
        "use_per_session_threads": False,
        "session_inter_op_thread_pool": list,
        "placement_period": 0,
        "device_filters": list,
        "gpu_options": GPUOptions,
        "allow_soft_placement": False,
        "log_device_placement": False,
        "graph_options": GraphOptions,
        "operation_timeout_in_ms": 0,
        "isolate_session_state": False,
        "share_cluster_devices_in_session": False,
    }

    def to_session_config(self) -> SessionConfig:
        """What it says in graphdock's words; logs a line for each field that means nothing here, once per process."""
        return translated(self)


_MEMORY = "memory is planned and taken as needed; SessionConfig(memory_limit={'cuda': '8GiB'}) bounds it"
_PASSES = "SessionConfig(passes={...}) switches graphdock's passes; `graphdock explain` shows what each did"
#: Field, or the beginning of its dotted name -> why it means nothing here. The longest that fits holds.
_MEANINGLESS = {
    "inter_op_parallelism_threads": "a step runs in the thread that calls it",
    "use_per_session_threads": "a step runs in the thread that calls it",
    "session_inter_op_thread_pool": "a step runs in the thread that calls it",
    "placement_period": "nodes are placed when a step is planned",
    "device_filters": "a session sees the devices of its backends: SessionConfig(backends=[...])",
    "gpu_options": "devices manage their own memory and polling; see the options of the backend's plugin",
    "gpu_options.per_process_gpu_memory_fraction": _MEMORY,
    "gpu_options.allocator_type": _MEMORY,
    "gpu_options.deferred_deletion_bytes": _MEMORY,
    "gpu_options.visible_device_list": "set CUDA_VISIBLE_DEVICES before the program starts, or SessionConfig(device_count={...})",
    "graph_options": "steps are planned otherwise; `graphdock explain` shows how",
    "graph_options.rewrite_options": _PASSES,
    "graph_options.optimizer_options": _PASSES,
    "isolate_session_state": "every session has its own state",
    "share_cluster_devices_in_session": "a session runs in its own process",
}
_told: set[str] = set()
_lock = new_lock()


def translated(proto: ConfigProto) -> SessionConfig:
    """See :meth:`ConfigProto.to_session_config`. Only what is set counts, so the environment and the file supply the rest."""
    given: dict[str, Any] = {}
    for name, value in proto.set_fields():
        if name == "device_count":
            given["device_count"] = {kind.lower(): count for kind, count in value.items()}
        elif name == "allow_soft_placement":
            given["fallback"] = "allow"
        elif name == "log_device_placement":
            given["log_device_placement"] = True
        elif name == "intra_op_parallelism_threads":
            given["intra_op_threads"] = value
        elif name == "operation_timeout_in_ms":
            given["operation_timeout"] = value / 1e3
        elif name == "graph_options.optimizer_options.opt_level" and value == OptimizerOptions.L0:
            given["passes"] = dict.fromkeys(PASSES, False)
        elif name == "graph_options.optimizer_options.global_jit_level":
            given["fusion"] = value != OptimizerOptions.OFF
        elif name != "gpu_options.allow_growth":  # what it asks for is so anyway: memory is taken as needed
            _tell(name, value)
    return SessionConfig(**given)


def _tell(name: str, value: Any) -> None:
    with _lock:
        if name in _told:
            return
        _told.add(name)
    parts = name.split(".")
    known = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    why = next(_MEANINGLESS[k] for k in known if k in _MEANINGLESS)
    _log.warning("ConfigProto.%s = %r means nothing here: %s", name, value, why)
