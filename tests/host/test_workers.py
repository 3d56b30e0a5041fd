"""Pools of threads for kernels: one per size, none for one thread, and made anew in a forked child."""

from __future__ import annotations

import os
import threading

import graphdock as tf
import numpy as np
from graphdock.plugin.host import Host
from graphdock.workers import WorkerPools


def test_one_pool_per_size_which_is_made_once():
    pools = WorkerPools()
    barrier, found = threading.Barrier(8), []

    def ask():
        barrier.wait()
        found.append(pools.of(2))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1 and pools.of(3) is not found[0]


def test_there_is_none_where_the_steps_own_thread_would_do():
    assert WorkerPools().of(1) is None


def test_its_threads_say_nothing_of_floating_point_errors():
    """As the thread of a step does not."""
    pool = WorkerPools().of(2)
    assert set(pool.submit(np.geterr).result().values()) == {"ignore"}


def test_a_forked_child_makes_its_own():
    pools = WorkerPools()
    pools.of(2).submit(int).result()
    child = os.fork()
    if not child:
        code = 1
        try:
            code = 0 if pools.of(2).submit(lambda: 7).result(30) == 7 else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_sessions_of_one_host_share_it():
    host = Host()
    with tf.Graph(host=host).as_default():
        first, second = (tf.Session(config=tf.SessionConfig(inter_op_threads=3), host=host) for _ in range(2))
        assert first._planner.setting.services.workers() is second._planner.setting.services.workers()
