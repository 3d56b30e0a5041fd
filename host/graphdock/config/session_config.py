"""Configuration of a session: a frozen record, and where each of its values comes from.

The strongest first, per field: an argument in code, the command line, the environment (``GRAPHDOCK_BACKENDS=...``), the
configuration file (``[session]``, with a profile's table over it), the default. A SessionConfig that sets only
``fallback`` leaves ``backends`` to the others.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from graphdock.config.values import CHECKS, FIELDS, plain
from graphdock.contracts.lazy_dataclass import defaults_of, lazy_dataclass
from graphdock.errors import ConfigError, did_you_mean
from graphdock.locks import new_lock
from graphdock.plugin import settings
from graphdock.plugin.settings import KEYS, ConfigFile
from graphdock.plugin.toml_text import parse

_EMPTY: Mapping[str, Any] = MappingProxyType({})
with open(os.path.join(os.path.dirname(__file__), "defaults.toml"), encoding="utf-8") as _opened:
    _DEFAULTS: Mapping[str, Any] = parse(_opened.read(), "defaults.toml", ConfigError)

#: TensorFlow's ConfigProto fields -> what to write instead.
_REPLACED = {
    "allow_soft_placement": "fallback='allow'",
    "gpu_options": "memory_limit={'<device type>': '8GiB'}",
    "graph_options": "passes={...} and fusion",
    "intra_op_parallelism_threads": "intra_op_threads",
    "inter_op_parallelism_threads": "inter_op_threads",
    "operation_timeout_in_ms": "operation_timeout, in seconds",
}


class Resolved(NamedTuple):
    """A value and its source: ``code``, ``--backends``, ``GRAPHDOCK_BACKENDS``, ``graphdock.toml:2`` or ``default``."""

    value: Any
    source: str


@runtime_checkable
class Translatable(Protocol):
    """A configuration in other words, such as TensorFlow's ConfigProto."""

    def to_session_config(self) -> SessionConfig: ...


#: What happens when the wanted device has no kernel.
Fallback: TypeAlias = Literal["forbid", "warn", "allow"]


@lazy_dataclass(frozen=True, kw_only=True)
class SessionConfig:
    """Configuration of one session. Immutable; may be shared by sessions and threads.

    Args:
      backends: names of plugins, the most wanted first; kernels come from these and from packages for their own ops.
      fallback: what happens when the wanted device has no kernel: ``forbid``; ``warn``: another listed backend, with
        one warning per plan; ``allow``. Or a table per op: ``{"default": "forbid", "Where": "allow"}``.
      kernels: pins, ``{"MatMul@cuda": "cuda.matmul_lt"}``.
      executor: ``auto`` (``straight_line``, or ``dataflow`` for what that refuses), or the name of an executor.
      placer: ``rules``: nodes that ask for no device are on the first that has a kernel for them; or the name of a placer, such as
        ``simulated``, that chooses among all devices that scopes and kernels allow.
      lock: a file that ``graphdock explain --lock`` wrote: nodes get the devices and kernels that they had then, and what no
        longer holds is said, by one warning and by ``explain``. It goes before ``placer`` and ``kernels``.
      device_count: device type, or an alias of it such as ``gpu`` -> how many to use; 0 hides them.
      plan_for: device type -> architecture, such as ``{"cuda": "sm_90"}``: plans are made, and kernels compiled, for such a
        device, whether there is one here or not. Such a session explains; it runs nothing.
      memory_limit: device type -> bytes, or a text such as ``"20GiB"``, that planned buffers and variables of the session may
        take on each device of that type. What kernels allocate themselves, and fetched arrays, do not count.
      memory_budget: device type -> bytes, likewise, that planned buffers of a step should take at most on such a device: values
        that are read late are computed again for that, and ``explain`` says how far it came. No limit.
      passes: pass name -> whether it runs.
      fusion: whether region compilers and fused kernels are used.
      plan_cache_size: most plans kept per session; those used longest ago are dropped first.
      shape_policy: ``exact``, ``generic``, or ``auto``: generic after eight shapes of one signature.
      intra_op_threads: on so many threads a kernel may compute. 0 for one per core that the process may use, and no more than
        ``OMP_NUM_THREADS`` says where it is set. Products of matrices in plans without large convolutions are computed on the
        threads of BLAS, whatever is said here; ``OPENBLAS_NUM_THREADS`` limits those.
      inter_op_threads: on so many threads an executor may run kernels of several nodes at once. 0 for as many as
        ``intra_op_threads`` of 0; 1 for none but the step's own. The straight-line executor runs one kernel after another.
      deterministic: only kernels that give the same bits on every run.
      check_numerics: stop a step at the first NaN or infinity, naming the op.
      operation_timeout: seconds a step may take; None for no limit.
      steps_in_flight: how many steps may be at work at once on devices with queues. With more than 1, ``run`` of operations alone
        returns once their work is queued; what goes wrong later is raised by the next ``run``, ``synchronize`` or ``close``.
      cluster: job -> how many tasks, such as ``{"ps": 1, "worker": 4}``: the tasks of a target that starts its own, such as ``ray://``,
        which do not run yet are started. Other targets refuse it, and a session in this process has no tasks.
      device_filters: names of jobs, tasks or devices, such as ``/job:ps``: a session on a target sees the tasks of its own and
        those that one of them names; none: all. A session in this process sees its devices whatever they say.
      isolate_session_state: a session on a target shares nothing with others; one in this process never does, but named containers.
      bfloat16_sendrecv: float32 travels between tasks of a cluster as its upper 16 bits, the rest cut off: what is received is
        nearer to 0 by less than 2**-7 of itself.
      log_device_placement: print where each node of a new plan runs.
      options: plugin name -> its options, checked against its manifest.
      debug: fill freed buffers with NaN and check every promise kernels make.

    Raises:
      ConfigError: an unknown field (with did-you-mean), a value of the wrong type or out of bounds.
    """

    backends: Sequence[str] = tuple(_DEFAULTS["backends"])
    fallback: Fallback | Mapping[str, Fallback] = "warn"
    kernels: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    executor: str = "auto"
    placer: str = "rules"
    lock: str | os.PathLike[str] | None = None
    device_count: Mapping[str, int] = field(default_factory=lambda: _EMPTY)
    plan_for: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    memory_limit: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    memory_budget: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    passes: Mapping[str, bool] = field(default_factory=lambda: _EMPTY)
    fusion: bool = True
    plan_cache_size: int = 2048
    shape_policy: Literal["exact", "generic", "auto"] = "auto"
    intra_op_threads: int = 0
    inter_op_threads: int = 0
    deterministic: bool = False
    check_numerics: bool = False
    operation_timeout: float | None = None
    steps_in_flight: int = 1
    cluster: Mapping[str, int] = field(default_factory=lambda: _EMPTY)
    device_filters: Sequence[str] = ()
    isolate_session_state: bool = False
    bfloat16_sendrecv: bool = False
    log_device_placement: bool = False
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: _EMPTY)
    debug: bool = False

    def __new__(cls, **given: Any) -> SessionConfig:
        for name in given:
            if name not in FIELDS:
                hint = f"write {_REPLACED[name]}" if name in _REPLACED else None
                if name in KEYS["plugins"]:
                    hint = (
                        "which plugins may load is said per process: [plugins] of graphdock.toml, or GRAPHDOCK_PLUGINS"
                    )
                raise ConfigError.unknown(f"SessionConfig has no field {name!r}", name, FIELDS, hint)
        self = super().__new__(cls)
        object.__setattr__(self, "_sources", dict.fromkeys(given, "code"))
        object.__setattr__(self, "_complete", False)
        return self

    def __post_init__(self) -> None:
        for name in self._given:
            value = _coerce(name, getattr(self, name), f"SessionConfig({name}=...)")
            object.__setattr__(self, name, value)

    @property
    def _given(self) -> dict[str, str]:
        """Field -> source, for the fields that were set on purpose."""
        sources: dict[str, str] = self.__dict__["_sources"]
        return sources

    @classmethod
    def _of(cls, values: Mapping[str, Resolved]) -> SessionConfig:
        """Of values that are coerced already, with their sources."""
        config = cls(**{name: value for name, (value, _) in values.items()})
        config._given.update({name: source for name, (_, source) in values.items()})
        return config

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], profile: str | None = None) -> SessionConfig:
        """``[session]`` of a file (``[tool.graphdock.session]`` of a pyproject.toml), and a profile's table over it.

        Raises:
          ConfigError: the file can't be read; an unknown key or profile, a value of the wrong type; with its line.
        """
        return cls._of(_from_file(settings.read_file(os.fsdecode(path)), profile, "profile"))

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> SessionConfig:
        """Settings of GRAPHDOCK_* variables; other fields stay unset. Raises ConfigError for a wrong or unknown one."""
        return cls._of(_from_environment(settings.environment(environ)))

    def replace(self, **changes: Any) -> SessionConfig:
        """A copy with some fields set; what was set before stays set, with its source."""
        given = {name: getattr(self, name) for name in self._given}
        config = type(self)(**{**given, **changes})
        config._given.update({name: source for name, source in self._given.items() if name not in changes})
        object.__setattr__(config, "_complete", self.__dict__["_complete"])
        return config

    def resolved(self) -> dict[str, Resolved]:
        """Every field as it holds for a session with this configuration, and where it came from."""
        config = effective_config(self)
        return {name: Resolved(getattr(config, name), config._given[name]) for name in FIELDS}

    def source(self, name: str) -> str:
        """Source of the value of one field."""
        return effective_config(self)._given[name]

    def fallback_for(self, op: str) -> str:
        """The fallback policy for an op type: ``forbid``, ``warn`` or ``allow``."""
        if isinstance(self.fallback, str):
            return self.fallback
        return self.fallback.get(op, self.fallback.get("default", "warn"))

    def _key(self) -> tuple[Any, ...]:
        return (tuple(self._given.items()), tuple(_freeze(getattr(self, name)) for name in FIELDS))

    def __hash__(self) -> int:
        return hash(tuple(_freeze(getattr(self, name)) for name in FIELDS))

    def __reduce__(self) -> Any:
        values = {name: (plain(getattr(self, name)), source) for name, source in self._given.items()}
        return _rebuild, (values, self.__dict__["_complete"])

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={plain(getattr(self, name))!r}" for name in FIELDS if name in self._given)
        return f"SessionConfig({shown})"


def _rebuild(values: Mapping[str, tuple[Any, str]], complete: bool) -> SessionConfig:
    config = SessionConfig._of({name: Resolved(*item) for name, item in values.items()})
    object.__setattr__(config, "_complete", complete)
    return config


def _freeze(value: Any) -> Any:
    if isinstance(value, Mapping):
        return frozenset((k, _freeze(v)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(_freeze(v) for v in value)
    return value


_DEFAULTS = defaults_of(SessionConfig)

#: Variable -> the field it sets.
_VARIABLES = {
    "GRAPHDOCK_BACKENDS": "backends",
    "GRAPHDOCK_FALLBACK": "fallback",
    "GRAPHDOCK_EXECUTOR": "executor",
    "GRAPHDOCK_STEPS_IN_FLIGHT": "steps_in_flight",
    "GRAPHDOCK_DEBUG": "debug",
}
_KINDS = {tuple: "a list of names", bool: "true or false", int: "an integer", MappingProxyType: "a table"}
_TEXT = frozenset({"fallback", "executor", "placer", "lock", "shape_policy", "operation_timeout"})


def _coerce(name: str, value: Any, where: str) -> Any:
    """The value as a SessionConfig holds it. Raises ConfigError that names ``where``."""
    if isinstance(value, str) and name not in _TEXT:
        raise ConfigError(
            f"{where}: {name} has the wrong type",
            expected=_KINDS[type(_DEFAULTS[name])],
            got=repr(value),
        )
    return CHECKS[name](value, where)


# -- sources


def _from_environment(variables: Mapping[str, str]) -> dict[str, Resolved]:
    return {
        name: Resolved(CHECKS[name](variables[variable], variable), variable)
        for variable, name in _VARIABLES.items()
        if variable in variables
    }


def _from_file(file: ConfigFile, profile: str | None, named_by: str) -> dict[str, Resolved]:
    values = _from_table(file, ("session",))
    profiles = file.table(("profile",))
    for name in profiles:
        file.table(("profile", name), ("session",))
    if profile is not None:
        if profile not in profiles:
            raise ConfigError.unknown(f"{named_by}: {file.label} has no profile {profile!r}", profile, profiles)
        values.update(_from_table(file, ("profile", profile, "session")))
    return values


def _from_table(file: ConfigFile, path: tuple[str, ...]) -> dict[str, Resolved]:
    table = file.table(path, FIELDS)
    values = {}
    for name, value in table.items():
        where = file.where(*path, name)
        values[name] = Resolved(_coerce(name, value, where), where)
    return values


def _from_command_line(given: Mapping[str, Any]) -> dict[str, Resolved]:
    values = {}
    for name, value in given.items():
        flag = "--" + name.replace("_", "-")
        if name not in FIELDS:
            raise ConfigError(f"unknown option {flag}", hint=did_you_mean(name, FIELDS))
        values[name] = Resolved(CHECKS[name](value, flag), flag)
    return values


_cache: dict[Any, SessionConfig] = {}
_cache_lock = new_lock()


def effective_config(
    code: SessionConfig | Translatable | None = None, command_line: Mapping[str, Any] | None = None
) -> SessionConfig:
    """The configuration that holds: per field code, command line, environment, file, default. Cached.

    Args:
      code: what the program gave, a SessionConfig or a ConfigProto; only the fields it set count.
      command_line: field -> value as typed.

    Raises:
      ConfigError: ``code`` is no SessionConfig, or anything outside is wrong: an unknown key or variable, a wrong type,
        an unknown profile.
    """
    if code is not None and not isinstance(code, SessionConfig):
        if not isinstance(code, Translatable):
            raise ConfigError(
                "config is not a SessionConfig",
                expected="a tf.SessionConfig or a tf.ConfigProto",
                got=f"a {type(code).__name__}",
                hint="write tf.SessionConfig(backends=[...])",
            )
        code = code.to_session_config()
    if code is not None and code.__dict__["_complete"]:
        return code
    variables = settings.environment()
    file = settings.find_file(variables)
    key = (
        None if code is None else code._key(),
        _freeze(command_line or {}),
        tuple(variables.items()),
        file,
    )
    with _cache_lock:
        found = _cache.get(key)
    if found is not None:
        return found
    values = {name: Resolved(value, "default") for name, value in _DEFAULTS.items()}
    profile = variables.get("GRAPHDOCK_PROFILE")
    if file is not None:
        values |= _from_file(file, profile, "GRAPHDOCK_PROFILE")
    elif profile is not None:
        raise ConfigError(f"GRAPHDOCK_PROFILE: there is no configuration file to take the profile {profile!r} from")
    values |= _from_environment(variables) | _from_command_line(command_line or {})
    if code is not None:
        values |= {name: Resolved(getattr(code, name), source) for name, source in code._given.items()}
    config = SessionConfig._of(values)
    object.__setattr__(config, "_complete", True)
    with _cache_lock:
        if len(_cache) >= 256:
            _cache.clear()
        _cache[key] = config
    return config
