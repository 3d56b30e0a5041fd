"""Keys of a configuration file, by the table that they belong into."""

from __future__ import annotations

__all__ = ["KEYS"]

#: Keys of ``[session]``, which are the fields of a SessionConfig, and of ``[plugins]``.
KEYS: dict[str, tuple[str, ...]] = {
    "session": (
        *(
            "backends",
            "fallback",
            "kernels",
            "executor",
            "device_count",
            "plan_for",
            "memory_limit",
            "passes",
            "fusion",
        ),
        *("plan_cache_size", "shape_policy", "intra_op_threads", "inter_op_threads", "deterministic", "check_numerics"),
        *("operation_timeout", "steps_in_flight", "log_device_placement", "options", "debug"),
    ),
    "plugins": ("allow", "block", "autoload"),
}
