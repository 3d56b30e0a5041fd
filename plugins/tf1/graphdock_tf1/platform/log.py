"""``tf.logging``: the logger ``graphdock``, with TensorFlow's functions and levels.

Until the program configures Python's logging, messages go to stderr as ``INFO:graphdock:text``. Any thread may log.
"""

from __future__ import annotations

import itertools
import logging
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

DEBUG = logging.DEBUG
INFO = logging.INFO
WARN = logging.WARNING
ERROR = logging.ERROR
FATAL = logging.CRITICAL
_log = logging.getLogger("graphdock")
_counts: dict[Any, Iterator[int]] = defaultdict(itertools.count)


class _Console(logging.Handler):
    """Writes to stderr as it is at that moment, while nobody has given Python's root logger a handler."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            sys.stderr.write(self.format(record) + "\n")

    def flush(self) -> None:
        sys.stderr.flush()


def get_logger() -> logging.Logger:
    """The logger ``graphdock``, which everything here and in graphdock writes to."""
    if not _log.handlers:
        console = _Console()
        console.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
        _log.addHandler(console)
    return _log


def log(level: int, msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log ``msg % args`` with a level."""
    get_logger().log(level, msg, *args, **kwargs)


def debug(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log with level DEBUG."""
    log(DEBUG, msg, *args, **kwargs)


def info(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log with level INFO."""
    log(INFO, msg, *args, **kwargs)


def warning(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log with level WARN."""
    log(WARN, msg, *args, **kwargs)


warn = warning


def error(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log with level ERROR."""
    log(ERROR, msg, *args, **kwargs)


def fatal(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log with level FATAL; the program goes on."""
    log(FATAL, msg, *args, **kwargs)


def vlog(level: int, msg: Any, *args: Any, **kwargs: Any) -> None:
    """``log``: the level is one of these."""
    log(level, msg, *args, **kwargs)


def log_if(level: int, msg: Any, condition: Any, *args: Any) -> None:
    """Log if a condition holds."""
    if condition:
        log(level, msg, *args)


def log_every_n(level: int, msg: Any, n: int, *args: Any) -> None:
    """Log the first, and every n-th call with this message."""
    log_if(level, msg, not next(_counts["every", msg]) % n, *args)


def log_first_n(level: int, msg: Any, n: int, *args: Any) -> None:
    """Log the first n calls with this message."""
    log_if(level, msg, next(_counts["first", msg]) < n, *args)


def set_verbosity(v: int | str) -> None:
    """Log messages of this level and above: ``tf.logging.INFO``, or its name."""
    get_logger().setLevel(v)


def get_verbosity() -> int:
    """The lowest level that is logged; WARN unless something was set."""
    return _log.getEffectiveLevel()


def flush() -> None:
    """Write out what handlers hold."""
    for handler in get_logger().handlers:
        handler.flush()
