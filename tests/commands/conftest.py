"""These tests look at defaults, so that a debug run of the suite must not show through."""

import pytest


@pytest.fixture(autouse=True)
def no_debug(monkeypatch):
    monkeypatch.delenv("GRAPHDOCK_DEBUG", raising=False)
