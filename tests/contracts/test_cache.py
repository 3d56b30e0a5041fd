"""The cache of what plugins compile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from graphdock.contracts import cache_dir, read_cache, replace_file, write_cache


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


def test_what_is_kept_comes_back_whole_and_whoever_may_read_the_folder_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "some" / "kernel.bin"
    assert read_cache(path) is None
    assert write_cache(path, b"first") and write_cache(path, b"second")
    assert read_cache(path) == b"second"
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    assert path.stat().st_mode == plain.stat().st_mode
    assert [p.name for p in path.parent.iterdir()] == ["kernel.bin"]


@pytest.mark.parametrize(
    "damage", [lambda d: b"", lambda d: d[:20], lambda d: d[:-1], lambda d: d[:40] + b"!" + d[41:]]
)
def test_a_damaged_file_is_nothing(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "kernel.bin"
    write_cache(path, b"sixteen bytes or more")
    path.write_bytes(damage(path.read_bytes()))
    assert read_cache(path) is None


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not write_cache(tmp_path / "file" / "kernel.bin", b"data")


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kernel.bin"
    replace_file(path, b"before")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("graphdock.contracts.cache.os.replace", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, b"after")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("kernel.bin", b"before")]
