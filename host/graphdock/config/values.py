"""The fields of a SessionConfig: how a value that somebody wrote is checked and made uniform."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike, fspath
from types import MappingProxyType
from typing import Any

from graphdock.device_name import DeviceSpec
from graphdock.errors import ConfigError, InvalidArgumentError, did_you_mean
from graphdock.plugin.settings import KEYS, as_bool, as_names

#: Largest count of anything that a setting counts.
_LARGEST = 2**31 - 1
#: Larger numbers are not printed: they may have thousands of digits.
_PRINTED = 10**30
_POLICIES = ("forbid", "warn", "allow")


def plain(value: Any) -> Any:
    """The value with ordinary dicts in place of read-only ones."""
    return {k: plain(v) for k, v in value.items()} if isinstance(value, Mapping) else value


def _wrong(where: str, name: str, expected: str, value: Any) -> ConfigError:
    return ConfigError(f"{where}: {name} is wrong", expected=expected, got=_shown(plain(value)))


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except (ValueError, RecursionError):  # more digits than Python prints
        return f"a {type(value).__name__} too large to print"


def _backends(value: Any, where: str) -> tuple[str, ...]:
    names = as_names(value, where, "backends")
    if not names:
        raise _wrong(where, "backends", "at least one name", value)
    if len(set(names)) < len(names):
        raise _wrong(where, "backends", "each name once", value)
    return names


def _choice(name: str, allowed: Sequence[str], value: Any, where: str) -> Any:
    if not isinstance(value, str) or value not in allowed:
        hint = did_you_mean(value, allowed) if isinstance(value, str) else None
        raise ConfigError(
            f"{where}: {name} is wrong", expected="one of " + ", ".join(allowed), got=repr(value), hint=hint
        )
    return value


def _fallback(value: Any, where: str) -> Any:
    if isinstance(value, Mapping):
        return MappingProxyType({op: _choice("fallback", _POLICIES, each, where) for op, each in value.items()})
    return _choice("fallback", _POLICIES, value, where)


def _integer(name: str, least: int, value: Any, where: str) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) <= 10:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise _wrong(where, name, f"an integer of at least {least}", value)
    if value > _LARGEST:
        raise _wrong(where, name, f"an integer of at most {_LARGEST}", value if value < _PRINTED else "more")
    return value


def _truth(name: str, value: Any, where: str) -> bool:
    return as_bool(value, where, name)


def _device_filters(value: Any, where: str) -> tuple[str, ...]:
    names = as_names(value, where, "device_filters")
    for name in names:
        try:
            DeviceSpec.parse(name)
        except InvalidArgumentError as error:
            raise _wrong(where, "device_filters", "names of jobs, tasks or devices, such as '/job:ps'", name) from error
    return names


def _table(name: str, check: Callable[[str, Any, str], Any], value: Any, where: str) -> Any:
    if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
        raise _wrong(where, name, "a table", value)
    return MappingProxyType({key: check(key, item, where) for key, item in value.items()})


def _device_count(key: str, value: Any, where: str) -> int:
    return _integer(f"device_count[{key!r}]", 0, value, where)


def _tasks(job: str, value: Any, where: str) -> int:
    if not re.fullmatch(r"[A-Za-z_]\w*", job, re.ASCII):
        raise _wrong(where, "cluster", "names of jobs, such as 'worker'", job)
    return _integer(f"cluster[{job!r}]", 1, value, where)


def _pin(key: str, value: Any, where: str) -> str:
    if not re.fullmatch(r"[\w.]+@[a-z]\w*", key):
        raise _wrong(where, "kernels", "keys such as 'MatMul@cuda'", key)
    if not isinstance(value, str) or "." not in value:
        raise _wrong(where, f"kernels[{key!r}]", "a kernel's full name such as 'cuda.matmul_lt'", value)
    return value


def _architecture(key: str, value: Any, where: str) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[\w.+-]{1,64}", value):
        raise _wrong(where, f"plan_for[{key!r}]", "an architecture, such as 'sm_90'", value)
    return value


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def _bytes(name: str, key: str, value: Any, where: str) -> int:
    if isinstance(value, str):
        match = re.fullmatch(r"(\d{1,19}(?:\.\d{1,19})?)\s*([A-Za-z]*)", value.strip())
        if match and match[2].upper() in _UNITS:
            value = int(float(match[1]) * _UNITS[match[2].upper()])
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**63:
        raise _wrong(where, f"{name}[{key!r}]", "bytes, or a text such as '20GiB'", value)
    return value


def _options(key: str, value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong(where, f"options[{key!r}]", "a table of the plugin's options", value)
    return MappingProxyType(dict(value))


def _timeout(value: Any, where: str) -> float | None:
    if value is None:
        return None
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value <= threading.TIMEOUT_MAX:
        raise _wrong(where, "operation_timeout", f"seconds, more than 0 and at most {threading.TIMEOUT_MAX:.0f}", value)
    return float(value)


def _lock(value: Any, where: str) -> str | None:
    if value is not None and (not isinstance(value, (str, PathLike)) or not fspath(value)):
        raise _wrong(where, "lock", "the path of a lock file", value)
    return None if value is None else str(fspath(value))


def _named(name: str, expected: str, value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise _wrong(where, name, expected, value)
    return value


#: Field -> function of (value, where it was written) that returns the value as it is kept, or raises ConfigError.
CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "backends": _backends,
    "fallback": _fallback,
    "kernels": partial(_table, "kernels", _pin),
    "executor": partial(_named, "executor", "'auto' or the name of an executor"),
    "placer": partial(_named, "placer", "'rules' or the name of a placer"),
    "lock": _lock,
    "device_count": partial(_table, "device_count", _device_count),
    "plan_for": partial(_table, "plan_for", _architecture),
    "memory_limit": partial(_table, "memory_limit", partial(_bytes, "memory_limit")),
    "memory_budget": partial(_table, "memory_budget", partial(_bytes, "memory_budget")),
    "passes": partial(_table, "passes", lambda k, v, w: _truth(f"passes[{k!r}]", v, w)),
    "fusion": partial(_truth, "fusion"),
    "plan_cache_size": partial(_integer, "plan_cache_size", 1),
    "shape_policy": partial(_choice, "shape_policy", ("auto", "exact", "generic")),
    "intra_op_threads": partial(_integer, "intra_op_threads", 0),
    "inter_op_threads": partial(_integer, "inter_op_threads", 0),
    "deterministic": partial(_truth, "deterministic"),
    "check_numerics": partial(_truth, "check_numerics"),
    "operation_timeout": _timeout,
    "steps_in_flight": partial(_integer, "steps_in_flight", 1),
    "cluster": partial(_table, "cluster", _tasks),
    "device_filters": _device_filters,
    "isolate_session_state": partial(_truth, "isolate_session_state"),
    "bfloat16_sendrecv": partial(_truth, "bfloat16_sendrecv"),
    "log_device_placement": partial(_truth, "log_device_placement"),
    "options": partial(_table, "options", _options),
    "debug": partial(_truth, "debug"),
}
FIELDS: tuple[str, ...] = KEYS["session"]
