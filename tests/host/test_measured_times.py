"""Measured times on disk: merged between processes, begun anew where damaged or of another machine, and never wrong numbers."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from graphdock.contracts import Rates
from graphdock.contracts.cache import read_cache, write_cache
from graphdock.errors import InvalidArgumentError
from graphdock.measured_times import MeasuredTimes


def facts(times):
    return json.loads(read_cache(times.path))


def test_times_are_means_of_which_the_last_eight_weigh_most(tmp_path):
    times = MeasuredTimes(tmp_path)
    assert times.seconds("a") is None
    times.record("a", 9.0, cold=True)
    assert times.seconds("a") == 9.0
    times.record("a", 1.0)
    assert times.seconds("a") == 1.0  # a first step counts until there is another
    times.record("a", 3.0, cold=True)
    assert times.seconds("a") == 1.0
    times.record("a", 2.0)
    assert times.seconds("a") == 1.5
    for _ in range(60):
        times.record("a", 5.0)
    assert times.seconds("a") == pytest.approx(5.0, rel=0.01)


def test_what_is_saved_is_found_by_another_process_and_joined_with_what_it_wrote(tmp_path):
    ours, theirs = MeasuredTimes(tmp_path), MeasuredTimes(tmp_path)
    assert ours.rates("cpu:0", lambda: Rates(1.0, 2.0, 3.0)) == Rates(1.0, 2.0, 3.0)
    ours.record("both", 1.0)
    theirs.record("both", 3.0)
    theirs.record("theirs", 4.0)
    assert theirs.save() and ours.save()
    found = MeasuredTimes(tmp_path)
    assert (found.seconds("both"), found.seconds("theirs")) == (2.0, 4.0)
    assert found.rates("cpu:0", pytest.fail) == Rates(1.0, 2.0, 3.0)
    assert ours.seconds("theirs") == 4.0


def test_processes_that_save_at_once_lose_nothing(tmp_path):
    code = (
        "import sys; from pathlib import Path; from graphdock.measured_times import MeasuredTimes\n"
        "for i in range(20):\n"
        "    times = MeasuredTimes(Path(sys.argv[1])); times.record(f'{sys.argv[2]} {i}', 1.0); assert times.save()\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(n)]) for n in range(3)]
    assert [p.wait(120) for p in running] == [0, 0, 0]
    assert len(facts(MeasuredTimes(tmp_path))["times"]) == 60


def test_nothing_new_writes_nothing(tmp_path):
    times = MeasuredTimes(tmp_path)
    assert times.seconds("a") is None and times.save() and not times.path.exists()


@pytest.mark.parametrize("wrong", [float("nan"), -1.0, float("inf")])
def test_a_time_that_is_none_is_refused_and_changes_nothing(tmp_path, wrong):
    times = MeasuredTimes(tmp_path)
    with pytest.raises(InvalidArgumentError, match="the cost of a is wrong"):
        times.record("a", wrong)
    assert times.seconds("a") is None


def damaged(path):
    path.write_bytes(path.read_bytes()[:-3])


def of_another_machine(path):
    write_cache(path, json.dumps({"machine": "elsewhere", "rates": {}, "times": {"a": [1.0, 1]}}).encode())


def negative(path):
    data = json.loads(read_cache(path))
    write_cache(path, json.dumps({**data, "times": {"a": [-1.0, 1]}}).encode())


def no_numbers(path):
    write_cache(path, b"[1, 2]")


@pytest.mark.parametrize("harm", [damaged, of_another_machine, negative, no_numbers], ids=lambda f: f.__name__)
def test_a_file_that_is_of_no_use_is_begun_anew_and_the_log_says_so(tmp_path, harm, caplog):
    times = MeasuredTimes(tmp_path)
    times.record("a", 1.0)
    assert times.save()
    harm(times.path)
    found = MeasuredTimes(tmp_path)
    assert found.seconds("a") is None
    assert "begun anew" in caplog.text and str(times.path) in caplog.text
    found.record("b", 2.0)
    assert found.save() and list(facts(found)["times"]) == ["b"]


def test_where_nothing_can_be_written_times_last_as_long_as_the_process(tmp_path, caplog):
    (tmp_path / "folder").write_text("a file")
    times = MeasuredTimes(tmp_path / "folder")
    times.record("a", 1.0)
    assert not times.save() and not times.save()
    assert times.seconds("a") == 1.0
    assert len(caplog.records) == 1 and "can't be written" in caplog.text
