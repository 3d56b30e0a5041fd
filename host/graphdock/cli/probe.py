"""``python -m graphdock.cli.probe PLUGIN FILE``: load and probe one plugin and write its ledger entry to FILE as JSON.

``graphdock doctor`` runs this in a child process, so that a plugin that crashes or exits takes only the child with it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from graphdock.errors import DeviceUnavailable, PluginError
from graphdock.plugin.host import configured_host
from graphdock.plugin.loader import check_drift

__all__ = ["main"]


def main(plugin: str, file: str) -> None:
    host = configured_host()
    try:
        backend = host.backend(plugin)
        for device_type in backend.device_types:
            host.device_infos(device_type)
    except (PluginError, DeviceUnavailable):
        pass  # the ledger says it
    state = next(s for s in host.plugins() if s.name == plugin and s.stage not in ("blocked", "duplicate"))
    check_drift(host, state)
    Path(file).write_text(json.dumps(state.entry().as_json()), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
