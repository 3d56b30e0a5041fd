"""Fixtures for tests that install plugins: a site is a folder on ``sys.path`` in which they are installed without pip."""

from __future__ import annotations

import fcntl
import gc
import importlib.util
import os
import zlib
from pathlib import Path

import pytest
from hypothesis import settings

PACKAGES = Path(__file__).parent / "packages"

#: Of the cases of each test one in how many is run in debug mode: their programs are run outside of it, all of them, anyway.
_ONE_IN_DEBUG = 10 if os.environ.get("GRAPHDOCK_DEBUG") == "1" else 1

settings.register_profile("graphdock", deadline=None)  # a busy machine is no fault
settings.load_profile("graphdock")


def not_in_the_sample(items):
    """The tests marked ``sampled(n)`` that ``make test`` leaves to ``make test-exhaustive``: all but one in n of each function.

    In debug mode other tests are sampled too.

    Which ones is told by their names, so that it stays the same wherever and with whatever else they are collected.
    """
    families = {}
    for item in items:
        mark = item.get_closest_marker("sampled")
        if (n := max(mark.args[0] if mark is not None else 1, _ONE_IN_DEBUG)) > 1:
            families.setdefault((item.nodeid.partition("[")[0], n), []).append(item)
    for (_, n), family in families.items():
        family.sort(key=lambda item: zlib.crc32(item.nodeid.encode()))
        yield from family[-(-len(family) // n) :]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in list(not_in_the_sample(items)):
        item.add_marker(pytest.mark.exhaustive)


def pytest_collection_finish(session):
    """Take the tests themselves out of what the collector walks: there are twenty thousand, and none is garbage until the end."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config):
    """Libraries look at what is left when the process ends."""
    gc.unfreeze()


def _load(name: str):
    spec = importlib.util.spec_from_file_location(name, PACKAGES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def tensorflow_files():
    """A writer of TensorFlow's checkpoints, made from their description alone."""
    path = Path(__file__).parent / "tensorflow" / "checkpoints" / "tensorflow_files.py"
    spec = importlib.util.spec_from_file_location("tensorflow_files", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def _default_graph_of_its_own():
    """An empty default graph for each test: what it builds, names or seeds there is nothing to those that its worker runs next.

    What modules and their fixtures build is in a graph of theirs, and comes back after the test.
    """
    import graphdock.graph.graph as graph_module

    before = graph_module._global_graph
    graph_module._global_graph = None
    yield
    graph_module._global_graph = before


@pytest.fixture(scope="session", autouse=True)
def _times_of_their_own(tmp_path_factory):
    """Times that tests measure are none of the user's, and what the user measured decides nothing in tests."""
    import graphdock.measured_times as measured_times

    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setattr(measured_times, "cache_dir", lambda: folder)
        yield


@pytest.fixture(scope="module", autouse=True)
def _kernels_as_they_were():
    """The process's kernels of std's ops, which all modules of a worker share, are after each module what they were before it."""
    import graphdock.plugin.host as host_module

    host = host_module._default
    before = {} if host is None else dict(host.kernels._by_op)
    yield
    host = host_module._default
    if host is not None:
        for op, kernels in host.kernels._by_op.items():
            if "." not in op:
                kept = before.get(op, ())
                host.kernels._by_op[op] = tuple(k for k in kernels if k.plugin != "user" or k in kept)


@pytest.fixture(scope="session")
def builder():
    """The module ``tests/packages/plugin_builder.py``."""
    return _load("plugin_builder")


@pytest.fixture(scope="session")
def suspects():
    """The module ``tests/packages/suspects.py``."""
    return _load("suspects")


@pytest.fixture(scope="session")
def environments():
    """The module ``tests/packages/environments.py``, where ``make wheelhouse`` has run."""
    module = _load("environments")
    if not list(module.WHEELHOUSE.glob("numpy-*.whl")):
        pytest.skip("run `make wheelhouse` first")
    return module


@pytest.fixture(scope="session")
def graphdock_wheel(environments, tmp_path_factory):
    """graphdock's own wheel, of the tree as it stands; built once for all workers of a run."""
    base = tmp_path_factory.getbasetemp()
    out = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "graphdock_wheel"
    out.mkdir(exist_ok=True)
    with (out / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return next(out.glob("*.whl"), None) or environments.wheel(PACKAGES.parents[1], out)


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
