"""What the tests of the triton plugin share."""

from __future__ import annotations

import pytest


@pytest.fixture
def process_host(monkeypatch):
    """Sets the host that the process uses by default, until the end of the test."""
    import graphdock.plugin.host as host_module

    def use(host):
        monkeypatch.setattr(host_module, "_default", host)
        return host

    return use
