"""Loading one plugin: triage without importing, then import, hook validation, hooks. Whole or not at all.

One plugin at a time, never through one call of a hook over all plugins, so that a raising plugin ends only itself. Its
first exception is kept; it becomes the ``__cause__`` of every later use.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import time
import traceback
from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pluggy

from graphdock.contracts import (
    API_VERSION,
    DeviceFactory,
    Executor,
    KernelDef,
    OpLibrary,
    Pattern,
    RegionCompiler,
    ResourceKind,
    SessionFactory,
    api_accepts,
)
from graphdock.errors import GraphdockError, ManifestError, PluginError, did_you_mean
from graphdock.plugin import hookspecs, manifest
from graphdock.plugin.consistency import check_drift
from graphdock.plugin.discovery import Found, manifest_path
from graphdock.plugin.ledger import Added
from graphdock.plugin.registry import RegisteredCompiler, RegisteredPattern, load_library
from graphdock.plugin.state import PluginState

if TYPE_CHECKING:
    from graphdock.plugin.host import Host

__all__ = [
    "HOOKS",
    "load_ops",
    "load_own",
    "load_rest",
    "new_manager",
    "triage",
]

#: Hook -> what its iterable holds.
HOOKS: dict[str, type] = {
    "register_devices": DeviceFactory,
    "register_ops": OpLibrary,
    "register_kernels": KernelDef,
    "register_region_compilers": RegionCompiler,
    "register_patterns": Pattern,
    "register_resource_kinds": ResourceKind,
    "register_executors": Executor,
    "register_session_factories": SessionFactory,
}
#: Modules of graphdock that implement hooks as a plugin's does.
OWN = ("graphdock_executor.straight_line",)


def trace(text: str) -> None:
    """One line on stderr when ``GRAPHDOCK_TRACE_PLUGINS=1``."""
    if os.environ.get("GRAPHDOCK_TRACE_PLUGINS") == "1":
        print(f"graphdock: {text}", file=sys.stderr)


def new_manager() -> pluggy.PluginManager:
    manager = pluggy.PluginManager("graphdock")
    manager.add_hookspecs(hookspecs)
    return manager


def triage(state: PluginState) -> bool:
    """Read the manifest and see whether the plugin could load; imports nothing of it. Whether it may go on."""
    if state.triaged or not state.usable:
        return state.usable
    state.triaged = True
    found = state.found
    path = manifest_path(found.package)
    if path is None:
        state.stop(
            "missing module",
            f"the package {found.package!r} of its entry point can't be found",
            f"reinstall it: pip install --force-reinstall {found.distribution}",
        )
        return False
    if not path.is_file():
        state.stop(
            "no manifest",
            f"{path.parent.name}/{manifest.FILE_NAME} is not installed",
            "a wheel built by setuptools leaves *.toml out unless told (package-data); hatchling keeps it",
        )
        return False
    try:
        state.manifest = manifest.load(path)
        if state.manifest.name != found.plugin:
            raise ManifestError(
                f"{state.manifest.label}: [plugin] name is {state.manifest.name!r}, "
                f"but the entry point is named {found.plugin!r}"
            )
    except ManifestError as error:
        state.stop("bad manifest", error.text, f"a fault of {found.distribution} {found.version}", error)
        return False
    if not api_accepts(state.manifest.api):
        version = f"{API_VERSION[0]}.{API_VERSION[1]}"
        state.stop(
            "incompatible",
            f"it needs contracts {state.manifest.api}, this is {version}",
            f"install another version of {found.distribution}",
        )
        return False
    missing = [name for name in state.manifest.imports if not _findable(name)]
    if missing:
        state.stop(
            "missing module",
            "missing " + ", ".join(missing),
            state.manifest.install or "pip install " + " ".join(missing),
        )
        return False
    return True


def _findable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # a module in sys.modules that has no spec is there all the same
        return True


def load_ops(host: Host, state: PluginState) -> bool:
    """Import the plugin and run ``register_ops``; a plugin that declares ops runs its other hooks too."""
    return _run(host, state, ("register_ops",)) and (not state.added.ops or load_rest(host, state))


def load_own(host: Host) -> None:
    """Register what graphdock's own modules bring by the hooks of plugins, under graphdock's name."""
    for name in OWN:
        module = importlib.import_module(name)
        state = PluginState(Found("graphdock", name, "graphdock", "0", ""), triaged=True, module=module)
        manager = new_manager()
        _validate(manager, state)
        for hook in HOOKS:
            _register(host, state, hook, _call(host, manager, state, hook))


def load_rest(host: Host, state: PluginState) -> bool:
    """Run every hook of the plugin that has not run yet. Whether it is usable now."""
    return _run(host, state, tuple(HOOKS))


def _run(host: Host, state: PluginState, hooks: tuple[str, ...]) -> bool:
    if state.busy or not triage(state):
        return state.usable
    todo = [h for h in hooks if h not in state.done]
    if not todo:
        return True
    started = time.perf_counter()
    state.busy = True
    stage, where = "import failed", f"import of {state.found.module}"
    try:
        if state.module is None:
            state.module = importlib.import_module(state.found.module)
        stage, where = "hook failed", "its hooks"
        if not host.manager.is_registered(state.module):
            _validate(host.manager, state)
        for where in todo:
            items = _call(host, host.manager, state, where)
            _register(host, state, where, items)
    except BaseException as error:
        host.discard(state.name, state.found.package)
        if state.module is not None and host.manager.is_registered(state.module):
            host.manager.unregister(state.module)
        state.module = None
        state.done.clear()
        state.added = Added()
        if not isinstance(error, (Exception, SystemExit)):
            raise
        state.import_ms = (state.import_ms or 0.0) + 1e3 * (time.perf_counter() - started)
        f = state.found
        state.stop(
            stage,
            _describe(error, f.package),
            f'a fault of {f.distribution} {f.version}; `block = ["{f.plugin}"]` under [plugins] silences it',
            error,
        )
        trace(f"{state.name}: {stage} at {where}: {state.cause}")
        return False
    finally:
        state.busy = False
    state.done.update(todo)
    state.import_ms = (state.import_ms or 0.0) + 1e3 * (time.perf_counter() - started)
    state.added = Added(
        host.devices.of_plugin(state.name),
        state.added.ops,
        state.added.kernels,
    )
    trace(f"{state.name}: {', '.join(todo)}: {str(state.added) or 'nothing'} in {state.import_ms:.1f} ms")
    if len(state.done) == len(HOOKS):
        state.stage = "registered"
        if not state.found.is_own and not state.found.in_memory:
            check_drift(host, state)
    return True


def _validate(manager: pluggy.PluginManager, state: PluginState) -> None:
    """Register the module with pluggy; say plugin, hook and argument when a hook does not fit its specification."""
    assert state.module is not None
    for name in dir(state.module):
        options = manager.parse_hookimpl_opts(state.module, name)
        if options is None:
            continue
        hook = options["specname"] or name
        if hook not in HOOKS:
            raise PluginError(
                f"plugin {state.name!r} implements {hook!r}, which is no hook",
                expected="one of " + ", ".join(HOOKS),
                hint=did_you_mean(hook, HOOKS),
            )
        if options["wrapper"] or options["hookwrapper"]:
            raise PluginError(
                f"plugin {state.name!r}: hook {hook!r} is a wrapper; graphdock calls each plugin by itself"
            )
    try:
        manager.register(state.module, state.name)
    except pluggy.PluginValidationError as error:
        hook, extra = _misfit(manager, state.module)
        raise PluginError(
            f"plugin {state.name!r}: hook {hook!r} takes {', '.join(map(repr, extra))}, which it is not offered",
            expected="host or no argument",
        ) from error


def _misfit(manager: pluggy.PluginManager, module: ModuleType) -> tuple[str, list[str]]:
    for name in dir(module):
        options = manager.parse_hookimpl_opts(module, name)
        if options is not None:
            offered = inspect.signature(getattr(module, name)).parameters.values()
            extra = [p.name for p in offered if p.name != "host" and p.default is p.empty]
            if extra:
                return options["specname"] or name, extra
    return "?", []


def _call(host: Host, manager: pluggy.PluginManager, state: PluginState, hook: str) -> list[Any]:
    items: list[Any] = []
    for impl in getattr(manager.hook, hook).get_hookimpls():
        if impl.plugin is not state.module:
            continue
        result = impl.function(*([host] if impl.argnames else []))
        if result is None:
            continue
        if not isinstance(result, Iterable):
            raise PluginError(f"plugin {state.name!r}: {hook} must return an iterable", got=repr(result))
        for item in result:
            if not isinstance(item, HOOKS[hook]):
                raise PluginError(
                    f"plugin {state.name!r}: {hook} returned a wrong item",
                    expected=HOOKS[hook].__name__,
                    got=repr(item),
                )
            items.append(item)
    return items


def _register(host: Host, state: PluginState, hook: str, items: list[Any]) -> None:
    added = state.added
    for item in items:
        if isinstance(item, DeviceFactory):
            host.devices.add(item, state.name)
        elif isinstance(item, KernelDef):
            host.kernels.add(item, state.name, state.found.package)
        elif isinstance(item, RegionCompiler):
            if (type(item).build is RegionCompiler.build) == (type(item).prepare is RegionCompiler.prepare):
                raise PluginError(
                    f"plugin {state.name!r}: the region compiler {item.name!r} is declared in the wrong way",
                    expected="build or prepare, and not both",
                    got=type(item).__name__,
                )
            compiler = RegisteredCompiler(state.name, state.found.package, item)
            host.region_compilers.add(compiler.full_name, compiler, state.name)
        elif isinstance(item, Pattern):
            pattern = RegisteredPattern(state.name, state.found.package, item)
            host.patterns.add(pattern.full_name, pattern, state.name)
        elif isinstance(item, ResourceKind):
            host.resource_kinds.add(item.name, item, state.name)
        elif isinstance(item, Executor):
            host.load_own()
            host.executors.add(item.name, item, state.name)
        elif isinstance(item, SessionFactory):
            host.session_factories.add(item.scheme, item, state.name)
        else:
            library = load_library(item.module)
            assert library is not None
            host.ops.add_library(*library, state.found.package, item.cases)
            added = Added(added.devices, added.ops + len(library[0]), added.kernels)
    if hook == "register_kernels":
        added = Added(added.devices, added.ops, len(items))
    state.added = added


def _describe(error: BaseException, package: str) -> str:
    """``NameError: name 'npx' is not defined (graphdock_mychip/kernels.py:14)``: with the last line of its own code."""
    if isinstance(error, SystemExit):
        text = f"SystemExit: it asked the process to exit with {error.code!r}"
    elif isinstance(error, GraphdockError):
        text = error.text
    else:
        text = f"{type(error).__name__}: {error}"
    own = [
        f"{os.path.join(package, frame.filename.replace(os.sep, '/').rpartition(f'/{package}/')[2])}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if f"/{package}/" in frame.filename.replace(os.sep, "/")
    ]
    return f"{text} ({own[-1]})" if own else text
