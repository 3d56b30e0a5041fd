"""Work on many items: the results in order, the first error, and nothing that goes on afterwards."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from graphdock.dtypes import float32
from graphdock.errors import DataLossError
from graphdock_storage import checkpoint
from graphdock_storage.checkpoint import parallel


@pytest.fixture(autouse=True)
def cores(monkeypatch):
    monkeypatch.setattr(parallel, "cores", lambda: 3)
    monkeypatch.setattr(parallel, "_LITTLE", 1000)


def test_few_bytes_are_one_threads_work():
    assert parallel.each(lambda i: threading.current_thread(), range(5), 999) == [threading.main_thread()] * 5


def test_many_are_several_threads_work_in_order():
    together = threading.Barrier(3, timeout=60)

    def work(i):
        if i < 3:
            together.wait()
        return i * i

    assert parallel.each(work, range(20), 1000) == [i * i for i in range(20)]


def test_the_first_error_is_raised_when_all_have_ended():
    begun, ended = [], []

    def work(i):
        begun.append(i)
        if i == 1:
            raise ValueError("item 1")
        threading.Event().wait(0.01)
        ended.append(i)

    with pytest.raises(ValueError, match="item 1"):
        parallel.each(work, range(50), 1000)
    assert len(begun) < 50 and len(ended) == len(begun) - 1


def test_a_checkpoint_that_several_threads_write_and_read(tmp_path):
    """Every tensor stands where the index says, whoever wrote it; and a damaged one is named."""
    arrays = {f"t{i}": np.full(i + 1, i, np.float32) for i in range(40)}
    path = str(tmp_path / "m")
    checkpoint.write(
        path, [checkpoint.Item(n, a, float32, a.shape, checkpoint.Slice.whole(a.shape)) for n, a in arrays.items()]
    )
    with checkpoint.open_checkpoint(path) as source:
        found = source.read_all([(name, None) for name in arrays])
        assert all(np.array_equal(a, b) for a, b in zip(found, arrays.values(), strict=True))
    (data,) = tmp_path.glob("*.safetensors")
    data.write_bytes(data.read_bytes().replace(np.float32(7).tobytes() * 8, np.float32(70).tobytes() * 8))
    with checkpoint.open_checkpoint(path) as source, pytest.raises(DataLossError, match="'t7'"):
        source.read_all([(name, None) for name in arrays])


def test_an_interrupt_waits_for_what_has_begun(monkeypatch):
    """Threads that write into somebody's memory have ended when anybody sees it again, however often Ctrl-C is pressed."""
    begun, go, ended = threading.Semaphore(0), threading.Event(), []
    real, pressed = parallel.wait, []

    def wait(futures):
        if len(pressed) < 2:
            pressed.append(1)
            raise KeyboardInterrupt
        go.set()
        real(futures)

    def work(i):
        begun.release()
        go.wait(60)
        ended.append(i)

    class Interrupted(parallel.Future):
        def result(self, timeout=None):
            for _ in range(3):
                begun.acquire()
            raise KeyboardInterrupt

    monkeypatch.setattr(parallel, "wait", wait)
    monkeypatch.setattr("concurrent.futures.thread._base.Future", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        parallel.each(work, range(50), 0, uninterrupted=True)
    assert sorted(ended) == [0, 1, 2]


def test_what_must_not_be_interrupted_is_no_main_threads_work(monkeypatch):
    monkeypatch.setattr(parallel, "cores", lambda: 1)
    assert parallel.each(lambda i: threading.current_thread(), [1], 1, uninterrupted=True) != [threading.main_thread()]
