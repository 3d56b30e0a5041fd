"""Settings that a process is given from outside: the configuration file, the GRAPHDOCK_* variables, and ``[plugins]`` in both.

The file is the one that ``GRAPHDOCK_CONFIG`` names; else the nearest ``graphdock.toml`` from the working directory
upwards to the first folder with a ``.git``; else the nearest ``pyproject.toml`` on that way that has a table
``[tool.graphdock]``. Outside of a repository only the working directory is looked at, so that a stranger's file in a
shared parent folder has no say.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

from graphdock.contracts.lazy_dataclass import changed, lazy_dataclass
from graphdock.errors import ConfigError
from graphdock.plugin.admission import Admission
from graphdock.plugin.toml_text import line_of, parse

if TYPE_CHECKING:
    from pathlib import Path

#: Keys of ``[session]``, which are the fields of a SessionConfig, and of ``[plugins]``.
KEYS: dict[str, tuple[str, ...]] = {
    "session": (
        *(
            "backends",
            "fallback",
            "kernels",
            "executor",
            "placer",
            "lock",
            "device_count",
            "plan_for",
            "memory_limit",
            "memory_budget",
            "passes",
            "fusion",
        ),
        *("plan_cache_size", "shape_policy", "intra_op_threads", "inter_op_threads", "deterministic", "check_numerics"),
        *("operation_timeout", "steps_in_flight", "cluster", "device_filters", "isolate_session_state"),
        *("bfloat16_sendrecv", "log_device_placement", "options", "debug"),
    ),
    "plugins": ("allow", "block", "autoload"),
}

#: Every variable graphdock reads. Another GRAPHDOCK_* name is an error, because it is a typing mistake.
ENVIRONMENT: dict[str, str] = {
    "GRAPHDOCK_CONFIG": "path of the configuration file",
    "GRAPHDOCK_PROFILE": "profile of the configuration file",
    "GRAPHDOCK_BACKENDS": "backends of every session, comma-separated, most wanted first",
    "GRAPHDOCK_FALLBACK": "forbid, warn or allow",
    "GRAPHDOCK_EXECUTOR": "auto or the name of an executor",
    "GRAPHDOCK_STEPS_IN_FLIGHT": "steps that a session may have at work at once on devices with queues",
    "GRAPHDOCK_PLUGINS": "plugins that may load besides graphdock's own, comma-separated; opt-in plugins alone block none",
    "GRAPHDOCK_BLOCK": "plugins that never load, comma-separated",
    "GRAPHDOCK_AUTOLOAD": "0: plugins load only when they are named",
    "GRAPHDOCK_CACHE_DIR": "folder for what backends compile",
    "GRAPHDOCK_CLUSTER_KEY": "secret that the processes of a cluster share",
    "GRAPHDOCK_TRACE_PLUGINS": "1: a line on stderr for everything a plugin does while it loads",
    "GRAPHDOCK_DEBUG": "1: sessions check every buffer",
}

#: Tables a configuration file may hold.
TABLES = (*KEYS, "profile")


@lazy_dataclass(frozen=True, eq=False)
class ConfigFile:
    """A configuration file that was read; ``label`` is its path as messages print it.

    Attributes:
      tables: what it says, without the ``tool.graphdock`` around it.
      prefix: ``("tool", "graphdock")`` for a pyproject.toml.
    """

    path: Path
    label: str
    text: str
    tables: Mapping[str, Any]
    prefix: tuple[str, ...] = ()

    def where(self, *path: str) -> str:
        """``graphdock.toml:9``, the line of a key."""
        return f"{self.label}:{line_of(self.text, *self.prefix, *path)}"

    def table(self, path: Sequence[str], keys: Sequence[str] | None = None) -> Mapping[str, Any]:
        """The table at ``path``, empty when there is none; ``keys`` are those it may hold (None: any).

        Raises:
          ConfigError: it is no table, or holds an unknown key.
        """
        node: Any = self.tables
        for name in path:
            node = node.get(name, {})
            if not isinstance(node, dict):
                raise ConfigError(f"{self.where(*path)}: {'.'.join(path)} must be a table", got=repr(node))
        for key in node if keys is not None else ():
            if key not in (keys or ()):
                inside = f" in [{'.'.join((*self.prefix, *path))}]" if path else ""
                hint = self._home(path, key, node[key])
                raise ConfigError.unknown(
                    f"{self.where(*path, key)}: unknown key {key!r}{inside}", key, keys or (), hint
                )
        result: Mapping[str, Any] = node
        return result

    def _home(self, path: Sequence[str], key: str, value: Any) -> str | None:
        """Return where a key that does not belong into the table at ``path`` does; None where no table has it."""
        profile = tuple(path[:2]) if path[:1] == ("profile",) and len(path) > 1 else ()
        for table, known in KEYS.items():
            if key in known and table != "plugins" or key in known and not profile:
                return f"it belongs in [{'.'.join((*self.prefix, *profile, table))}]"
        if key in TABLES and path:
            return f"write [{'.'.join((*self.prefix, key))}], a table of its own"
        if path[-1:] == ("session",) and isinstance(value, dict):
            return f"options of a plugin belong in [{'.'.join((*self.prefix, *path, 'options', key))}]"
        return None


def environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The GRAPHDOCK_* variables that are set; an empty one counts as not set.

    Raises:
      ConfigError: an unknown one; suggests the nearest.
    """
    environ = os.environ if environ is None else environ
    mine = {k: v for k, v in environ.items() if k.startswith("GRAPHDOCK_") and v}
    for name in mine:
        if name not in ENVIRONMENT:
            raise ConfigError.unknown(f"unknown environment variable {name}", name, ENVIRONMENT)
    return mine


def find_file(variables: Mapping[str, str], folder: str | os.PathLike[str] = "") -> ConfigFile | None:
    """The configuration file that holds for a process in ``folder`` (default: the working directory), or None.

    Raises:
      ConfigError: GRAPHDOCK_CONFIG names no file; the file is not TOML or has an unknown table.
    """
    named = variables.get("GRAPHDOCK_CONFIG")
    if named:
        if not os.path.lexists(named):
            raise ConfigError(f"GRAPHDOCK_CONFIG: there is no file {_short(named)}")
        return read_file(named)
    folders = [os.path.abspath(folder)]
    while (above := os.path.dirname(folders[-1])) != folders[-1]:
        folders.append(above)
    root = next((i for i, f in enumerate(folders) if os.path.exists(os.path.join(f, ".git"))), 0)
    for here in folders[: root + 1]:
        if os.path.isfile(path := os.path.join(here, "graphdock.toml")):
            return read_file(path)
    for here in folders[: root + 1]:
        if os.path.isfile(path := os.path.join(here, "pyproject.toml")):
            found = read_file(path)
            if found.tables:
                return found
    return None


def _short(text: str) -> str:
    return repr(text if len(text) <= 200 else f"{text[:100]}...{text[-50:]}")


_read: dict[tuple[str, int, int, str], ConfigFile] = {}


def read_file(name: str) -> ConfigFile:
    """Read a configuration file, or ``[tool.graphdock]`` of a ``pyproject.toml``. Read again only when it changed.

    Raises:
      ConfigError: it can't be read, is not TOML, or has an unknown table.
    """
    from pathlib import Path  # a first session without a file does without it

    path = Path(name)
    try:
        stat = path.stat()
        if not S_ISREG(stat.st_mode):
            raise ConfigError(f"the configuration file {_short(str(path))} is not a file")
        key = (str(path.absolute()), stat.st_mtime_ns, stat.st_size, os.getcwd())
        if key in _read:
            return _read[key]
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # ValueError: a zero byte in its name, or no UTF-8
        raise ConfigError(f"the configuration file {_short(str(path))} can't be read: {error}") from error
    label = os.path.relpath(path)
    found = ConfigFile(path, label, text, parse(text, label, ConfigError))
    if path.name == "pyproject.toml":
        found = changed(found, tables=found.table(("tool", "graphdock")), prefix=("tool", "graphdock"))
    found.table((), TABLES)
    if len(_read) > 64:
        _read.clear()
    _read[key] = found
    return found


def as_names(value: Any, where: str, what: str) -> tuple[str, ...]:
    """A list of names, or a comma-separated string of them, as a tuple. Raises ConfigError naming ``where``."""
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) and v for v in value):
        raise ConfigError(f"{where}: {what} has the wrong type", expected="a list of names", got=repr(value))
    return tuple(value)


def as_bool(value: Any, where: str, what: str) -> bool:
    """True or false, or one of the words a variable may say. Raises ConfigError naming ``where``."""
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    if not isinstance(value, bool):
        raise ConfigError(f"{where}: {what} has the wrong type", expected="true or false", got=repr(value))
    return value


def plugin_settings(variables: Mapping[str, str] | None = None, file: ConfigFile | None = None) -> Admission:
    """``[plugins]`` as it holds for this process: per key the environment, then the file.

    Raises:
      ConfigError: an unknown key or variable, or a value of the wrong type.
    """
    if variables is None:
        variables = environment()
        file = find_file(variables)
    table = {} if file is None else file.table(("plugins",), KEYS["plugins"])

    def setting(key: str, variable: str, read: Callable[[Any, str, str], Any]) -> tuple[Any, str]:
        if variable in variables:
            return read(variables[variable], variable, f"plugins.{key}"), variable
        if file is None or key not in table:
            return None, "default"
        value, where = table[key], file.where("plugins", key)
        if read is as_names and isinstance(value, str):
            raise ConfigError(f"{where}: plugins.{key} has the wrong type", expected="a list of names", got=repr(value))
        return read(value, where, f"plugins.{key}"), where

    allow, allow_where = setting("allow", "GRAPHDOCK_PLUGINS", as_names)
    block, block_where = setting("block", "GRAPHDOCK_BLOCK", as_names)
    autoload, _ = setting("autoload", "GRAPHDOCK_AUTOLOAD", as_bool)
    block = block or ()
    origins = {} if allow is None else dict.fromkeys(("allow", *allow), allow_where)
    return Admission(allow, block, autoload is not False, {**origins, **dict.fromkeys(block, block_where)})


def cache_dir(variables: Mapping[str, str] | None = None) -> Path:
    """Return where backends keep what they compile: ``GRAPHDOCK_CACHE_DIR``, else ``graphdock`` in the user's cache folder."""
    from graphdock.contracts.cache import cache_dir as cache_of

    return cache_of(environment() if variables is None else variables)
