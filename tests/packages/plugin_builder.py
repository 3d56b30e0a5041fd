"""Installs small plugins into a folder on ``sys.path``, without pip: a package tree and its ``.dist-info``.

``tests/conftest.py`` imports this by path; it is no test module.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

MANIFEST = """\
schema = 1

[plugin]
name = "{name}"
summary = "A plugin of the tests"
api = ">=0.3,<0.4"
"""

#: A plugin that does nothing wrong and nothing else.
QUIET = "from graphdock.contracts import hookimpl\n"

#: A plugin with one virtual device type, named like the plugin, and one kernel.
DEVICE = """\
import numpy as np
from graphdock.contracts import Device, DeviceFactory, DeviceInfo, DeviceUnavailable, KernelDef, hookimpl

OPENED = []
PROBED = []

class Chip(Device):
    def __init__(self, info, options):
        super().__init__(info)
        self.options = dict(options)
        OPENED.append(self)

    def allocate(self, nbytes, align=64): return np.empty(nbytes, np.uint8)
    def view(self, storage, offset, dtype, shape): return np.ndarray(shape, dtype.np, storage, offset)
    def copy(self, src, dst): np.copyto(dst, src)
    def from_host(self, array, dst): np.copyto(dst, array)
    def to_host(self, src, dst): np.copyto(dst, src)

class Factory(DeviceFactory):
    device_type = "{name}"
    virtual = {virtual}

    def probe(self):
        PROBED.append(1)
        {probe}

    def open(self, info, options): return Chip(info, options)

@hookimpl
def register_devices(): return [Factory()]

@hookimpl
def register_kernels(): return [KernelDef("Identity", "{name}", lambda ctx: np.copy)]
"""


def device_source(name: str, probe: str | None = None, virtual: bool = False) -> str:
    """Source of a plugin with a device; ``probe`` is the body of its probe."""
    default = f'return [DeviceInfo("{name}", 0), DeviceInfo("{name}", 1)]'
    return DEVICE.replace("{name}", name).replace("{virtual}", str(virtual)).replace("{probe}", probe or default)


def device_manifest(name: str, extra: str = "") -> str:
    """Manifest of :func:`device_source`."""
    return MANIFEST.format(name=name) + f'\n[[devices]]\ntype = "{name}"\naliases = ["{name}_alias"]\n' + extra


def shipped() -> set[str]:
    """Names of the plugins that graphdock's wheel ships, without those that must be allowed by name."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    return set(project["entry-points"]["graphdock"])


class Site:
    """A folder on ``sys.path`` in which distributions are installed and removed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.packages: list[str] = []
        folder.mkdir(parents=True, exist_ok=True)

    def plugin(
        self,
        name: str,
        source: str = QUIET,
        *,
        manifest: str | None = "",
        version: str = "1.0",
        distribution: str | None = None,
        package: str | None = None,
        files: Mapping[str, str] | None = None,
    ) -> str:
        """Install a plugin whose entry-point module holds ``source``; returns its package's name.

        ``manifest`` is its text, "" for a plain one, None for none at all.
        """
        distribution = distribution or f"graphdock-{name}"
        package = package or distribution.replace("-", "_")
        tree = self.folder / package
        tree.mkdir()
        (tree / "__init__.py").write_text("")
        (tree / "plugin.py").write_text(source)
        if manifest is not None:
            (tree / "graphdock-plugin.toml").write_text(manifest or MANIFEST.format(name=name))
        for path, text in (files or {}).items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
        self.record(distribution, version, {name: f"{package}.plugin"})
        self.packages.append(package)
        return package

    def record(self, distribution: str, version: str, entry_points: Mapping[str, str]) -> Path:
        """Write the ``.dist-info`` of a distribution."""
        info = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        rows = "".join(f"{name} = {value}\n" for name, value in entry_points.items())
        (info / "entry_points.txt").write_text(f"[graphdock]\n{rows}")
        importlib.invalidate_caches()
        return info

    def project(self, root: Path) -> None:
        """Install a source tree as an editable install is: its ``src`` on the path, its ``.dist-info`` here."""
        project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
        points = project["entry-points"]["graphdock"]
        self.record(project["name"], project["version"], points)
        self.packages += [value.partition(".")[0] for value in points.values()]

    def remove(self, distribution: str) -> None:
        """Uninstall a distribution."""
        for info in self.folder.glob(f"{distribution.replace('-', '_')}-*.dist-info"):
            shutil.rmtree(info)
        shutil.rmtree(self.folder / distribution.replace("-", "_"), ignore_errors=True)
        importlib.invalidate_caches()

    def forget(self) -> None:
        """Take what was imported from here out of ``sys.modules``."""
        for name in list(sys.modules):
            if name.partition(".")[0] in self.packages:
                del sys.modules[name]
