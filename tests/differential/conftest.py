"""The generators, as modules: this folder is no package."""

from __future__ import annotations

import collections
import importlib.util
import sys
from pathlib import Path

import pytest
from graphdock.contracts import print_graph
from graphdock.passes import pipeline
from graphdock.planning import plan_passes


def load(name: str):
    """The module of that name beside this file, loaded once."""
    full = f"graphdock_differential_{name}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, Path(__file__).with_name(f"{name}.py"))
        module = sys.modules[full] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[full]


@pytest.fixture(scope="session")
def random_graph():
    return load("random_graph")


@pytest.fixture(scope="session")
def sharing(random_graph):
    return load("sharing")


@pytest.fixture(scope="session")
def extremes(random_graph):
    return load("extremes")


@pytest.fixture(scope="session")
def random_conds():
    return load("random_conds")


@pytest.fixture(scope="session")
def ways_to_run():
    return load("ways")


@pytest.fixture(scope="session")
def random_updates():
    return load("random_updates")


@pytest.fixture(scope="session")
def ownership(random_updates):
    return load("ownership")


@pytest.fixture(scope="session")
def random_loops():
    return load("random_loops")


@pytest.fixture(scope="session")
def loop_gradients():
    return load("loop_gradients")


@pytest.fixture(scope="session")
def shuffled_order():
    return load("shuffle")


@pytest.fixture(scope="session")
def pattern_samples():
    return load("pattern_samples")


@pytest.fixture(scope="session")
def random_control_flow():
    return load("random_control_flow")


@pytest.fixture(scope="session")
def lowered():
    return load("lowered")


@pytest.fixture
def again(monkeypatch):
    """Counts, by name, how often a pass changed a graph; each is run once more right behind itself, and has to change nothing."""
    changed, real = collections.Counter(), pipeline.apply_pass

    def apply_pass(row, graph, levels, context):
        was = print_graph(graph)
        result = real(row, graph, levels, context)
        if result is None:  # a writer of loops is no change yet
            once = print_graph(graph)
            changed[row.each.name] += once != was
            real(row, graph, list(graph.all_graphs()), context)
            assert print_graph(graph) == once, row.each.name
        return result

    monkeypatch.setattr(pipeline, "apply_pass", apply_pass)
    monkeypatch.setattr(plan_passes, "apply_pass", apply_pass)
    return changed
