"""Where plugins keep what they compile."""

from __future__ import annotations

from pathlib import Path

import pytest
from graphdock.contracts import cache_dir


def test_the_variable_names_the_folder() -> None:
    assert cache_dir({"GRAPHDOCK_CACHE_DIR": "/x/y"}) == Path("/x/y")


def test_else_it_is_in_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir({}) == tmp_path / "graphdock"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir({"GRAPHDOCK_CACHE_DIR": ""}) == tmp_path / ".cache" / "graphdock"


def test_an_empty_folder_name_is_none() -> None:
    assert cache_dir({"GRAPHDOCK_CACHE_DIR": ""}).name == "graphdock"
