"""``tf.logging``: levels, what is counted, and where messages go."""

from __future__ import annotations

import logging

import graphdock as tf
import pytest


@pytest.fixture(autouse=True)
def logger():
    found = logging.getLogger("graphdock")
    level, handlers = found.level, found.handlers[:]
    yield found
    found.setLevel(level)
    found.handlers[:] = handlers


def test_messages_go_to_stderr_until_the_program_configures_logging(capsys, monkeypatch, logger) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    assert tf.logging.get_verbosity() == tf.logging.WARN
    tf.logging.info("hidden")
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.logging.info("step %d", 3)
    logging.getLogger("graphdock").info("Graph was finalized.")  # what a hook says
    assert capsys.readouterr().err == "INFO:graphdock:step 3\nINFO:graphdock:Graph was finalized.\n"
    root.handlers = [logging.NullHandler()]
    tf.logging.error("once")
    assert capsys.readouterr().err == "" and tf.get_logger() is logger and len(logger.handlers) == 1


def test_levels_and_counts(caplog) -> None:
    tf.logging.set_verbosity("DEBUG")
    for call in ("debug", "info", "warn", "warning", "error", "fatal"):
        getattr(tf.logging, call)("%s", call)
    assert [r.levelno for r in caplog.records] == [10, 20, 30, 30, 40, 50]
    caplog.clear()
    for i in range(5):
        tf.logging.log_every_n(tf.logging.INFO, "every %d", 2, i)
        tf.logging.log_first_n(tf.logging.INFO, "first %d", 2, i)
        tf.logging.log_if(tf.logging.INFO, "if %d", i == 3, i)
    tf.logging.vlog(tf.logging.DEBUG, "v")
    tf.logging.flush()
    assert [r.getMessage() for r in caplog.records] == "every 0,first 0,first 1,every 2,if 3,every 4,v".split(",")
