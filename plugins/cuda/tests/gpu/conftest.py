"""The GPU of these tests: with ``EMULATED_GPU=1`` and the folder ``emulated`` on the path, an emulated one."""

from __future__ import annotations

import os
from typing import Any

import pytest
from graphdock.errors import GraphdockError
from graphdock.plugin.host import Host


@pytest.fixture(scope="session")
def emulated() -> bool:
    """Whether there is no GPU: sizes and counts are small then, and nothing takes long."""
    return os.environ.get("EMULATED_GPU") == "1"


@pytest.fixture(scope="module")
def host() -> Host:
    found = Host()
    try:
        found.backend("cuda")
        found.open_device("/device:cuda:0")
    except GraphdockError as error:
        pytest.skip(str(error.message))
    return found


@pytest.fixture
def device(host: Host) -> Any:
    return host.open_device("/device:cuda:0")
