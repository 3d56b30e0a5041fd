"""On how many threads a kernel computes by default."""

from __future__ import annotations

import pytest
from graphdock import cores


@pytest.mark.parametrize(
    ("said", "expected"), [(None, 6), ("", 6), ("4", 4), ("4,2", 4), ("64", 6), ("0", 6), ("-1", 6), ("many", 6)]
)
def test_the_environment_may_lower_it(monkeypatch, said, expected):
    monkeypatch.setattr(cores, "cores", lambda: 6)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if said is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert cores.threads() == expected


def test_cores_are_those_of_the_process():
    assert cores.cores() >= 1


#: Lines of /proc/self/cgroup, files below /sys/fs/cgroup, and how many cores that is of sixteen.
GROUPS = {
    "two of a container, whose group is the top one that it sees": ("0::/", {"cpu.max": "200000 100000\n"}, 2),
    "no limit": ("0::/", {"cpu.max": "max 100000\n"}, 16),
    "half of a core": ("0::/", {"cpu.max": "50000 100000\n"}, 1),
    "two and a half": ("0::/", {"cpu.max": "250000 100000"}, 3),
    "a group around it is tighter": (
        "0::/a/b",
        {"a/b/cpu.max": "800000 100000", "a/cpu.max": "300000 100000", "cpu.max": "max 100000"},
        3,
    ),
    "it says a path that is not there": ("0::/../else/where", {"cpu.max": "400000 100000"}, 4),
    "version 1": (
        "4:memory:/x\n3:cpu,cpuacct:/x",
        {"cpu/x/cpu.cfs_quota_us": "150000\n", "cpu/x/cpu.cfs_period_us": "50000\n", "cpu/cpu.cfs_quota_us": "-1\n"},
        3,
    ),
    "version 1, no limit": ("1:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 16),
    "nothing that makes sense": ("what\n0::/", {"cpu.max": "a lot"}, 16),
    "no files": ("0::/x", {}, 16),
}


@pytest.mark.parametrize("name", GROUPS)
def test_no_more_than_control_groups_give(name, tmp_path, monkeypatch):
    lines, files, expected = GROUPS[name]
    for path, text in {"proc/self/cgroup": lines, **{f"sys/fs/cgroup/{p}": t for p, t in files.items()}}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    share = cores._share
    monkeypatch.setattr(cores, "_share", lambda: share(str(tmp_path)))
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: set(range(16)))
    assert cores.cores() == expected


def test_a_system_without_control_groups_has_all_its_cores(tmp_path, monkeypatch):
    share = cores._share
    monkeypatch.setattr(cores, "_share", lambda: share(str(tmp_path)))
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: {0, 3})
    assert cores.cores() == 2
