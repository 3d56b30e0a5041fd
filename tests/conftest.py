"""Fixtures for tests that install plugins: a site is a folder on ``sys.path`` in which they are installed without pip."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

#: Plugins that are installed with graphdock and have kernels of std's ops.
OWNERS = ("host", "cpu", "queued")
PACKAGES = Path(__file__).parent / "packages"


def _load(name: str):
    spec = importlib.util.spec_from_file_location(name, PACKAGES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", autouse=True)
def _no_kernel_is_left_behind():
    """The process's host has for ops of std the kernels of its plugins: what a module's tests add they take back."""
    yield
    import graphdock.plugin.host as host_module

    if host_module._default is not None:
        of_std = [r for r in host_module._default.kernels.all() if "." not in r.kernel.op]
        assert [f"{r.full_name} for {r.kernel.op}" for r in of_std if r.plugin not in OWNERS] == []


@pytest.fixture(scope="session")
def builder():
    """The module ``tests/packages/plugin_builder.py``."""
    return _load("plugin_builder")


@pytest.fixture(scope="session")
def suspects():
    """The module ``tests/packages/suspects.py``."""
    return _load("suspects")


@pytest.fixture
def site(builder, tmp_path, monkeypatch):
    """An empty site, no configuration file, no GRAPHDOCK_* variable but DEBUG, and a working directory of its own."""
    for name in [n for n in os.environ if n.startswith("GRAPHDOCK_") and n != "GRAPHDOCK_DEBUG"]:
        monkeypatch.delenv(name)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    place = builder.Site(tmp_path / "site")
    monkeypatch.syspath_prepend(str(place.folder))
    yield place
    place.forget()


@pytest.fixture
def toy(site, monkeypatch):
    """The site with the complete package ``graphdock-toy`` in it."""
    monkeypatch.syspath_prepend(str(PACKAGES / "graphdock-toy" / "src"))
    site.project(PACKAGES / "graphdock-toy")
    return site


@pytest.fixture
def process_host(monkeypatch):
    """Sets the host that the process uses by default, until the end of the test."""
    import graphdock.plugin.host as host_module

    def use(host):
        monkeypatch.setattr(host_module, "_default", host)
        return host

    return use
