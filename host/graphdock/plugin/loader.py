"""Loading one plugin: triage without importing, then import, hook validation, hooks. Whole or not at all.

One plugin at a time, never through one call of a hook over all plugins, so that a raising plugin ends only itself. Its
first exception is kept; it becomes the ``__cause__`` of every later use.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pluggy

from graphdock.contracts.version import API_VERSION, api_accepts
from graphdock.errors import ManifestError, PluginError
from graphdock.locks import new_lock
from graphdock.plugin import hookspecs, manifest
from graphdock.plugin.discovery import find_spec, manifest_path
from graphdock.plugin.hookspecs import HOOKS
from graphdock.plugin.state import Added, PluginState, cause_of

if TYPE_CHECKING:
    from graphdock.plugin.host import Host


#: Registries of what :class:`Added` has a field for.
_COUNTED = ("devices", "ops", "kernels")
#: Held while a manifest is read, when nothing is imported.
_triage_lock = new_lock()


def trace(text: str) -> None:
    """One line on stderr when ``GRAPHDOCK_TRACE_PLUGINS=1``."""
    if os.environ.get("GRAPHDOCK_TRACE_PLUGINS") == "1":
        print(f"graphdock: {text}", file=sys.stderr)


def triage(state: PluginState) -> bool:
    """Read the manifest and see whether the plugin could load; imports nothing of it. Whether it may go on.

    Threads: any, with the host's lock or without.
    """
    with _triage_lock:
        if not state.triaged and state.usable:
            _triage(state)
            state.triaged = True
        return state.usable


def _triage(state: PluginState) -> None:
    found = state.found
    path = manifest_path(found.module)
    if path is None:
        state.stop(
            "missing module",
            f"the package {found.package!r} of its entry point can't be found",
            f"reinstall it: pip install --force-reinstall {found.distribution}",
        )
        return
    if not os.path.isfile(path):
        state.stop(
            "no manifest",
            f"{manifest.label_of(path)} is not installed",
            "a wheel built by setuptools leaves *.toml out unless told (package-data); hatchling keeps it",
        )
        return
    try:
        state.manifest = manifest.load(path)
        if state.manifest.name != found.plugin:
            raise ManifestError(
                f"{state.manifest.label}: [plugin] name is {state.manifest.name!r}, "
                f"but the entry point is named {found.plugin!r}"
            )
    except ManifestError as error:
        state.fault("bad manifest", error.text, error)
        return
    if not api_accepts(state.manifest.api):
        version = f"{API_VERSION[0]}.{API_VERSION[1]}"
        state.stop(
            "incompatible",
            f"it needs contracts {state.manifest.api}, this is {version}",
            f"install another version of {found.distribution}",
        )
        return
    missing = [name for name in state.manifest.imports if not _findable(name)]
    if missing:
        state.stop(
            "missing module",
            "missing " + ", ".join(missing),
            state.manifest.install or "pip install " + " ".join(missing),
        )


def _findable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ValueError:  # a module in sys.modules that has no spec is there all the same
        return True


def load_ops(host: Host, state: PluginState) -> bool:
    """Import the plugin and run ``register_ops``. Another's plugin that declares ops runs its other hooks too, so that its manifest
    is compared with all of its code; graphdock's own were compared before they were shipped."""
    return _run(host, state, ("register_ops",)) and (
        state.found.is_own or not state.added.ops or load_rest(host, state)
    )


def load_for_plans(host: Host, states: Iterable[PluginState], hook: str) -> None:
    """Import the plugins whose manifests say that they have a hook of every plan, and run it; warn of those that fail."""
    for state in states:
        if state.states(hook) and not _run(host, state, (hook,)):
            import logging  # takes 3 ms, which a listing of plugins has no use for

            log = logging.getLogger("graphdock")
            what = hook.removeprefix("register_")
            log.warning("the %s of plugin %s take no part: %s: %s", what, state.name, state.stage, state.cause)


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
        if state.hooks is None:
            state.hooks = _hooks_of(state)
        counts = {}
        for where in todo:
            counts[where] = _run_hook(host, state, where)
    except BaseException as error:
        host.discard(state.name, state.found.package)
        state.module = state.hooks = None
        state.done.clear()
        state.added = Added()
        if not isinstance(error, (Exception, SystemExit)):
            raise
        state.import_ms = (state.import_ms or 0.0) + 1e3 * (time.perf_counter() - started)
        state.fault(
            "bad manifest" if isinstance(error, ManifestError) else stage,
            cause_of(error, state.found.package),
            error,
            f'; `block = ["{state.name}"]` under [plugins] silences it',
        )
        trace(f"{state.name}: {stage} at {where}: {state.cause}")
        return False
    finally:
        state.busy = False
    state.done |= counts
    state.import_ms = (state.import_ms or 0.0) + 1e3 * (time.perf_counter() - started)
    state.added = Added(
        tuple([factory.device_type for factory in host.devices.of_plugin(state.name)]),
        state.done.get("register_ops", 0),
        state.done.get("register_kernels", 0),
        tuple([(HOOKS[n].singular, c) for n, c in state.done.items() if c and HOOKS[n].registry not in _COUNTED]),
    )
    trace(f"{state.name}: {', '.join(todo)}: {str(state.added) or 'nothing'} in {state.import_ms:.1f} ms")
    if len(state.done) == len(HOOKS):
        state.stage = "registered"
        if not state.found.is_own and not state.found.in_memory:
            from graphdock.plugin.consistency import check_drift  # graphdock's own are compared before they are shipped

            check_drift(host, state)
    return True


def _hooks_of(state: PluginState) -> pluggy.PluginManager:
    """A manager that holds this plugin alone, so that a call of a hook runs its functions and nobody else's.

    Raises:
      PluginError: a hook does not fit its specification; names plugin, hook and argument.
    """
    manager = pluggy.PluginManager("graphdock")
    manager.add_hookspecs(hookspecs)
    assert state.module is not None
    for name in dir(state.module):
        options = manager.parse_hookimpl_opts(state.module, name)
        if options is None:
            continue
        hook = options["specname"] or name
        if hook not in HOOKS:
            raise PluginError.unknown(f"plugin {state.name!r} implements {hook!r}, which is no hook", hook, HOOKS)
        if options["wrapper"] or options["hookwrapper"]:
            raise PluginError(
                f"plugin {state.name!r}: hook {hook!r} is a wrapper; graphdock calls each plugin by itself"
            )
        if HOOKS[hook].of_every_plan and state.manifest is not None and not state.states(hook):
            raise PluginError(
                f"plugin {state.name!r} implements {hook!r}, and its manifest does not say so",
                hint=f'hooks = ["{hook}"] under [plugin], with the others: every plan asks for it, before anything is imported',
            )
        taken = inspect.signature(getattr(state.module, name)).parameters.values()
        wanted = [p for p in taken if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.default is p.empty]
        extra = [repr(p.name) for p in wanted if p.name != "host"]
        if extra:
            raise PluginError(
                f"plugin {state.name!r}: hook {hook!r} takes {', '.join(extra)}, which it is not offered",
                expected="host or no argument",
            )
    manager.register(state.module, state.name)
    return manager


def _run_hook(host: Host, state: PluginState, name: str) -> int:
    """Call one hook of the plugin and register its items, once all of them are of the right type. How many things those are."""
    assert state.hooks is not None
    row = HOOKS[name]
    items: list[Any] = []
    for result in getattr(state.hooks.hook, name)(host=host):
        if not isinstance(result, Iterable):
            raise PluginError(f"plugin {state.name!r}: {name} must return an iterable", got=repr(result))
        items += result
    types = row.types if items else ()
    for item in items:
        if not isinstance(item, types):
            expected = " or ".join(row.items)
            raise PluginError(f"plugin {state.name!r}: {name} returned a wrong item", expected=expected, got=repr(item))
    if items and row.own_first and not state.found.is_own:
        host.load_for(name, own=True)
    registry = getattr(host, row.registry)
    return sum([registry.register(state, item) for item in items])
