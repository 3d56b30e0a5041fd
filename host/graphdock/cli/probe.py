"""``python -m graphdock.cli.probe PLUGIN FILE``: load and probe one plugin, and write to FILE what happens.

:mod:`graphdock.cli.isolated` runs this in a child process, so that a plugin that crashes, exits or hangs takes only the child with
it. FILE gets one JSON object per line: ``{"doing": WORDS, "device": TYPE}`` before each probe, ``{"device": TYPE, "status": ...}``
with what it found, ``{"doing": WORDS}`` before kernels are asked whether their libraries are here, and at the end
``{"entry": ..., "names": ...}``, the plugin's ledger entry and what it has under names that nobody else may have.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphdock.errors import DeviceUnavailable, GraphdockError, PluginError
from graphdock.plugin.consistency import check_drift, check_modules, check_parts, names_brought
from graphdock.plugin.host import Host, configured_host
from graphdock.plugin.state import PluginState

#: Typed facts of a DeviceInfo; None where the probe does not know.
TYPED = ("architecture", "multiprocessors", "shared_memory_bytes", "warp_size")


def main(plugin: str, file: str) -> None:
    with Path(file).open("w", encoding="utf-8") as out:

        def tell(**row: Any) -> None:
            print(json.dumps(row, default=str), file=out, flush=True)

        host = configured_host()
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
        tell(entry=state.entry().as_json(), names=names_brought(host, state))


def _probe_kernels(host: Host, state: PluginState, tell: Callable[..., None]) -> None:
    """Ask each kernel of a plugin that has loaded whether what it needs is here; what is not is the plugin's fault."""
    if not state.loaded:
        return
    probes = [(r, r.kernel.probe) for r in host.kernels.all() if r.plugin == state.name and r.kernel.probe is not None]
    if probes:
        tell(doing="it probed its kernels")
    lacking: dict[str, tuple[list[str], Exception]] = {}
    for registered, probe in probes:
        try:
            probe()
        except Exception as error:  # noqa: BLE001 - it is a plugin's code, and what it raises is told
            lacking.setdefault(str(error), ([], error))[0].append(registered.full_name)
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
    main(*sys.argv[1:])
