"""tf.custom_op as a decorator: its own arguments, and many threads that define one op."""

from __future__ import annotations

import sys
import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from numpy.typing import NDArray

F32 = NDArray[np.float32]
SAME = {"x": "[*S]", "y": "[*S]"}


def test_threads_that_run_the_same_definition_get_one_op():
    host, barrier = Host(), threading.Barrier(8)
    made, wrong = [], []

    def work():
        with tf.Graph(host=host).as_default():
            barrier.wait()
            try:

                @tf.custom_op("race::same", shapes=SAME)
                def same(x: F32) -> F32:
                    return x * 2

                made.append(same)
            except Exception as error:  # noqa: BLE001 - told to the test's own thread
                wrong.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong and len({id(op) for op in made}) == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"shapes": ["[*S]"]}, "shapes"),
        ({"version": 0}, "version"),
        ({"version": "1"}, "version"),
        ({"version": True}, "version"),
    ],
)
def test_an_argument_that_says_nothing_is_named(given, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"lab::wrong: {words}"):
        tf.custom_op("lab::wrong", **given)
