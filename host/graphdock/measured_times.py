"""Times that traced steps took, and rates of devices: kept in the user's cache, one file per machine, for all processes.

A file is read when the first question is asked and written when a session that learned something closes. Whoever writes reads
first, alone, and adds what is new since, so that processes merge. What is damaged, or of another machine, is begun anew, and a line
of the log says so; where nothing can be written, too.
"""

from __future__ import annotations

import contextlib
import json
import logging
import platform
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from graphdock.contracts.cache import cache_dir, read_cache, write_cache
from graphdock.contracts.costs import Rates, checked_seconds
from graphdock.cores import cores
from graphdock.errors import InvalidArgumentError
from graphdock.locks import new_lock

__all__ = ["MeasuredTimes"]

_log = logging.getLogger("graphdock")

#: A mean, in seconds, and of how many runs; 0 for one that the first step of a plan took, which counts until there is another.
_Mean: TypeAlias = "tuple[float, int]"
#: As many runs as a mean remembers: later ones weigh no less than one in so many.
_MEMORY = 8
#: Most times that are kept; those that were seen longest ago go first.
_MOST = 50_000


def _machine() -> str:
    return f"{platform.node()} {platform.machine()} {cores()} cores"


class MeasuredTimes:
    """Times by key, and rates by device. A host has one for all its sessions. May be asked from any thread.

    Args:
      folder: where the file is; default: ``costs`` in the cache folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        from hashlib import sha256

        self._lock = new_lock()
        self._machine = _machine()
        name = f"{sha256(self._machine.encode()).hexdigest()[:16]}.json"
        self.path = (cache_dir() / "costs" if folder is None else folder) / name
        self._times: dict[str, _Mean] | None = None
        self._rates: dict[str, Rates | None] = {}
        self._new: dict[str, _Mean] = {}
        self._new_rates = False
        self._warned = False

    def seconds(self, key: str) -> float | None:
        """The mean time of what has this key; None where it was never seen."""
        with self._lock:
            found = self._known().get(key)
        return None if found is None else found[0]

    def record(self, key: str, seconds: float, cold: bool = False) -> None:
        """Take in the time of one run.

        Args:
          cold: of the first step of a plan, which loads and makes what later ones find: it counts until there is another.

        Raises:
          InvalidArgumentError: the time is no finite number of at least 0.
        """
        one: _Mean = (checked_seconds(key, seconds), 0 if cold else 1)
        with self._lock:
            known = self._known()
            known[key] = _joined(known.pop(key, None), one)
            self._new[key] = _joined(self._new.get(key), one)

    def rates(self, device: str, probe: Callable[[], Rates | None]) -> Rates | None:
        """The rates of a device, by its name; ``probe`` is asked the first time on this machine. None where it has none to tell."""
        with self._lock:
            self._known()
            if device not in self._rates:
                self._rates[device] = probe()
                self._new_rates = True
            return self._rates[device]

    def save(self) -> bool:
        """Write what is new, joined with what other processes wrote meanwhile. Whether it could be written."""
        with self._lock:
            if not self._new and not self._new_rates:
                return True
            with _alone(self.path):
                times, rates = self._read()
                for key, mean in self._new.items():
                    times[key] = _joined(times.pop(key, None), mean)
                rates.update({name: r for name, r in self._rates.items() if r is not None})
                kept = dict(list(times.items())[-_MOST:])
                facts = {
                    "machine": self._machine,
                    "rates": {name: [r.flops, r.bytes, r.launch] for name, r in rates.items() if r is not None},
                    "times": kept,
                }
                written = write_cache(self.path, json.dumps(facts).encode())
            if written:
                self._times, self._new, self._new_rates = kept, {}, False
            else:
                self._warn("can't be written: measured times last as long as this process")
            return written

    def _known(self) -> dict[str, _Mean]:
        if self._times is None:
            self._times, self._rates = self._read()
        return self._times

    def _read(self) -> tuple[dict[str, _Mean], dict[str, Rates | None]]:
        """Contents of the file; nothing where there is none, or where it is of no use."""
        data = read_cache(self.path)
        if data is None:
            if self.path.exists():
                self._warn("is damaged, and begun anew")
            return {}, {}
        try:
            facts = json.loads(data)
            if facts["machine"] != self._machine:
                self._warn(f"is of another machine ({facts['machine']}), and begun anew")
                return {}, {}
            rates: dict[str, Rates | None] = {name: Rates(*row) for name, row in facts["rates"].items()}
            return {key: _checked(key, mean) for key, mean in facts["times"].items()}, rates
        except (ValueError, KeyError, TypeError, AttributeError, InvalidArgumentError) as error:
            self._warn(f"holds what is no cost ({error}), and is begun anew")
            return {}, {}

    def _warn(self, what: str) -> None:
        if not self._warned:
            self._warned = True
            _log.warning("the file of measured times %s %s", self.path, what)


def _checked(key: str, mean: Any) -> _Mean:
    seconds, count = mean
    return checked_seconds(key, seconds), int(count)


def _joined(a: _Mean | None, b: _Mean) -> _Mean:
    """The mean of both; one of no counted run gives way to any other."""
    if a is None or not a[1]:
        return b
    if not b[1]:
        return a
    before = min(a[1], _MEMORY - 1) if b[1] < _MEMORY else min(a[1], b[1])
    count = before + b[1]
    return (a[0] * before + b[0] * b[1]) / count, count


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """No other process in such a block for the same file; where a file can't be locked the last one stands, whole."""
    try:
        import fcntl

        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.with_suffix(".lock").open("a")
    except (ImportError, OSError):
        yield
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
