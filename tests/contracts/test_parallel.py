"""One pool per process, of the plugin that gives it first; the device names the context of its libraries."""

from __future__ import annotations

import threading

import pytest
from graphdock.contracts import intra_op_pool, parallel


@pytest.fixture(autouse=True)
def nothing_given(monkeypatch):
    monkeypatch.setattr(parallel, "_POOL", [])


def test_the_first_plugin_that_gives_a_pool_gives_the_process_its_pool():
    assert (intra_op_pool("a", lambda: 7).plugin, intra_op_pool("b", lambda: 8).run) == ("a", 7)


def test_where_making_it_fails_there_is_none_and_another_may_give_it():
    with pytest.raises(OSError, match="no threads"):
        intra_op_pool("a", lambda: (_ for _ in ()).throw(OSError("no threads")))
    assert intra_op_pool("b", lambda: 8).plugin == "b"


def test_it_is_made_once_though_many_threads_ask():
    made = []
    threads = [threading.Thread(target=lambda: intra_op_pool("a", lambda: made.append(1) or 5)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]


def test_the_cpu_device_offers_the_context_of_its_blas():
    pytest.importorskip("threadpoolctl")
    from graphdock_cpu.blas import one_thread
    from graphdock_cpu.device import CpuFactory

    factory = CpuFactory()
    assert factory.open(factory.probe()[0], {}).service("single-threaded", 1) is one_thread()
