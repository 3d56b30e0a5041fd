"""TensorFlow's ConfigProto and what it is made of, and the SessionConfig that says the same.

A program may pass either wherever a session is configured. Each field that is set is translated, or means nothing here and is told
once, with the reason and what to write instead.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import graphdock as _tf
from graphdock import messages
from graphdock.locks import new_lock
from graphdock.passes.pipeline import simplifications

__all__ = ["ConfigProto", "GPUOptions", "GraphOptions", "OptimizerOptions", "ServerDef", "translated"]

_log = logging.getLogger("graphdock")


GPUOptions = messages.GPUOptions
GraphOptions = messages.GraphOptions
OptimizerOptions = messages.OptimizerOptions
ConfigProto = messages.ConfigProto
ServerDef = messages.ServerDef
_MEMORY = "memory is planned and taken as needed; SessionConfig(memory_limit={'cuda': '8GiB'}) bounds it"
_PASSES = "SessionConfig(passes={...}) switches graphdock's passes; `graphdock explain` shows what each did"
#: Field, or the beginning of its dotted name -> why it means nothing here. The longest that fits holds.
_MEANINGLESS = {
    "use_per_session_threads": "a step runs in the thread that calls it",
    "session_inter_op_thread_pool": "a step runs in the thread that calls it",
    "placement_period": "nodes are placed when a step is planned",
    "cluster_def": "a session finds the tasks of a cluster by its target",
    "experimental": "there is no such setting; `graphdock explain` shows how a step is run",
    "experimental.executor_type": "SessionConfig(executor=...) names the executor",
    "gpu_options": "devices manage their own memory and polling; see the options of the backend's plugin",
    "gpu_options.per_process_gpu_memory_fraction": _MEMORY,
    "gpu_options.allocator_type": _MEMORY,
    "gpu_options.deferred_deletion_bytes": _MEMORY,
    "gpu_options.visible_device_list": "set CUDA_VISIBLE_DEVICES before the program starts, or SessionConfig(device_count={...})",
    "graph_options": "steps are planned otherwise; `graphdock explain` shows how",
    "graph_options.rewrite_options": _PASSES,
    "graph_options.optimizer_options": _PASSES,
    "share_cluster_devices_in_session": "a session knows the devices of all its tasks",
}
_told: set[str] = set()
_lock = new_lock()


def translated(proto: Any) -> Any:
    """Return what a ConfigProto says in graphdock's words; logs a line for each field that means nothing here, once per process.

    Only what is set counts, so the environment and the file supply the rest.

    Raises:
      ConfigError: a value that the SessionConfig refuses.
    """
    given: dict[str, Any] = {}
    for name, value in _set_fields(proto):
        if name == "device_count":
            given["device_count"] = {kind.lower(): count for kind, count in value.items()}
        elif name == "allow_soft_placement":
            given["fallback"] = "allow"
        elif name == "log_device_placement":
            given["log_device_placement"] = True
        elif name == "intra_op_parallelism_threads":
            given["intra_op_threads"] = value
        elif name == "inter_op_parallelism_threads":
            given["inter_op_threads"] = max(value, 1)
        elif name == "device_filters":
            given["device_filters"] = tuple(value)
        elif name == "isolate_session_state":
            given["isolate_session_state"] = value
        elif name == "graph_options.enable_bfloat16_sendrecv":
            given["bfloat16_sendrecv"] = value
        elif name == "operation_timeout_in_ms":
            given["operation_timeout"] = value / 1e3
        elif name == "graph_options.optimizer_options.opt_level" and value == OptimizerOptions.L0:
            given["passes"] = dict.fromkeys(simplifications(), False)
        elif name == "graph_options.optimizer_options.global_jit_level":
            given["fusion"] = value != OptimizerOptions.OFF
        elif name != "gpu_options.allow_growth":  # what it asks for is so anyway: memory is taken as needed
            _tell(name, value)
    return _tf.SessionConfig(**given)


#: Makes a ConfigProto a configuration (:class:`graphdock.config.session_config.Translatable`).
ConfigProto.to_session_config = translated


def _set_fields(message: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted name and value of each field that is set, those of messages inside as well."""
    for field, value in message.ListFields():
        if hasattr(value, "ListFields"):
            yield from _set_fields(value, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name, value


def _tell(name: str, value: Any) -> None:
    with _lock:
        if name in _told:
            return
        _told.add(name)
    parts = name.split(".")
    known = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    why = next(_MEANINGLESS[k] for k in known if k in _MEANINGLESS)
    _log.warning("ConfigProto.%s = %r means nothing here: %s", name, value, why)
