"""The logger ``graphdock``, which imports ``logging`` for who says something."""

from __future__ import annotations

import logging
import subprocess
import sys

from graphdock.logger import logger


def test_it_is_the_logger_that_users_turn_on_and_off():
    assert logger() is logging.getLogger("graphdock")


def test_a_first_session_that_says_nothing_imports_neither_logging_nor_pathlib(tmp_path):
    program = (
        "import sys; before = set(sys.modules)\n"
        "import graphdock as tf\n"
        "x = tf.placeholder(tf.float32, [3])\n"
        "y = x + 1\n"
        "with tf.Session(config=tf.SessionConfig(backends=['cpu'], fusion=False)) as session:\n"
        "    session.run(y, {x: [1, 2, 3]})\n"
        "print({'logging', 'pathlib'} & (set(sys.modules) - before))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "set()"
