"""``python -m graphdock_commands.probe``: load and probe one plugin after another, each in a fork of this process.

:mod:`graphdock_commands.fork_server` asks for it, so that a plugin that crashes, exits or hangs takes only its fork with it; what
all have in common is imported once. A line of standard input is ``[PLUGIN, FILE, ERRORS]`` in JSON; standard output answers with
the fork's process id and, once it has ended, its exit status, negative for a signal. The fork leads a session and writes to ERRORS.
Where processes can't fork, ``python -m graphdock_commands.probe PLUGIN FILE`` does one plugin.

FILE gets one JSON object per line: ``{"doing": WORDS, "device": TYPE}`` before each probe, ``{"device": TYPE, "status": ...}``
with what it found, ``{"doing": WORDS}`` before kernels are asked whether their libraries are here, and at the end
``{"entry": ..., "names": ...}``, the plugin's ledger entry and what it has under names that nobody else may have.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np  # noqa: F401 - most plugins need it: imported before the forks
from graphdock.errors import DeviceUnavailable, GraphdockError, PluginError
from graphdock.plugin.consistency import check_drift
from graphdock.plugin.host import Host, configured_host
from graphdock.plugin.state import PluginState

from graphdock_commands.checks import check_modules, check_parts, names_brought

#: Typed facts of a DeviceInfo; None where the probe does not know.
TYPED = ("architecture", "multiprocessors", "shared_memory_bytes", "warp_size")


def serve() -> None:
    """Fork for each plugin that standard input names, until it ends. No plugin is imported here."""
    host = configured_host()
    for line in sys.stdin:
        plugin, file, errors = json.loads(line)
        fork = os.fork()
        if not fork:
            os.setsid()
            _redirect(errors)
            main(plugin, file, host)
            return
        print(fork, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]), flush=True)


def _redirect(errors: str) -> None:
    """Give the plugin no input, no output, and a file for what it writes to standard error."""
    nothing, written = os.open(os.devnull, os.O_RDWR), os.open(errors, os.O_WRONLY | os.O_CREAT, 0o600)
    for source, target in ((nothing, 0), (nothing, 1), (written, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(written)


def main(plugin: str, file: str, host: Host) -> None:
    """Load and probe a plugin, and tell it."""
    with Path(file).open("w", encoding="utf-8") as out:

        def tell(**row: Any) -> None:
            print(json.dumps(row, default=str), file=out, flush=True)

        state = next(s for s in host.plugins() if s.name == plugin and s.stage not in ("blocked", "duplicate"))
        try:
            backend = host.backend(plugin)
            check_modules(host, state)
            for device_type in backend.device_types if state.stage == "registered" else ():
                tell(doing=f"it probed for {device_type!r}", device=device_type)
                _probe(host, device_type, tell)
        except PluginError:
            pass  # the ledger says it
        _probe_kernels(host, state, tell)
        check_parts(host, state)
        check_drift(host, state)
        tell(entry=asdict(state.entry()), names=names_brought(host, state))


def _probe_kernels(host: Host, state: PluginState, tell: Callable[..., None]) -> None:
    """Ask each kernel of a plugin that has loaded whether what it needs is here; what is not is the plugin's fault."""
    if not state.loaded:
        return
    probes = [(r, r.kernel.probe) for r in host.kernels.all() if r.plugin == state.name and r.kernel.probe is not None]
    if probes:
        tell(doing="it probed its kernels")
    lacking: dict[str, tuple[list[str], Exception]] = {}
    found: dict[str, None] = {}
    for registered, probe in probes:
        try:
            told = probe()
        except Exception as error:  # noqa: BLE001 - it is a plugin's code, and what it raises is told
            lacking.setdefault(str(error), ([], error))[0].append(registered.full_name)
        else:
            if told is not None:
                found[str(told)] = None
    if found:
        tell(found=list(found))
    if lacking:
        named = [f"{', '.join(names)}: {_message(error)}" for names, error in lacking.values()]
        hint = next((e.hint for _, e in lacking.values() if isinstance(e, GraphdockError) and e.hint), None)
        state.stop("probe failed", "; ".join(named), hint)


def _message(error: Exception) -> str:
    """Return what happened, without the hint, on one line."""
    if not isinstance(error, GraphdockError):
        return f"{type(error).__name__}: {error}"
    compared = [f"{word} {text}" for word, text in (("expected", error.expected), ("got", error.got)) if text]
    return " ".join([error.message, *([f"({', '.join(compared)})"] if compared else [])])


def _probe(host: Host, device_type: str, tell: Callable[..., None]) -> None:
    try:
        infos = host.device_infos(device_type)
    except DeviceUnavailable as error:
        tell(device=device_type, status="no device", cause=error.reason, hint=error.hint)
    except PluginError as error:
        tell(device=device_type, status="fault", cause=error.message, hint=error.hint)
        raise
    else:
        rows = []
        for info in infos:
            row = {"memory_bytes": info.memory_bytes, "attributes": dict(info.attributes)}
            facts = {name: getattr(info, name) for name in TYPED}
            rows.append({"device": f"{info.device_type}:{info.index}", **row, "facts": facts})
        tell(device=device_type, status="ready", infos=rows)


if __name__ == "__main__":
    if sys.argv[1:]:
        main(sys.argv[1], sys.argv[2], configured_host())
    else:
        serve()
