"""Loading and probing plugins, each in a process of its own that has only so much time. A crash or a hang is a line, not an end."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
from graphdock.plugin.state import Added, LedgerEntry, first_of

from graphdock_commands.fork_server import Child, Server, servers
from graphdock_commands.limits import Limits

#: Seconds that a child may take to end once it has told everything.
ENDING = 5.0
#: Seconds between two looks at a child.
_LOOK = 0.02
#: Children at a time.
_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class Examined:
    """Outcome of examining one plugin.

    Attributes:
      entry: its line in the ledger.
      devices: device type -> what its probe told: ``status`` (``ready``, ``no device``, ``fault``), then ``infos``, or ``cause``
        and ``hint``. Types that were not reached are absent.
      names: what it registered that no other plugin may: ``op 'shop.Legs'``.
      found: what its kernels' probes have found, in words.
    """

    entry: LedgerEntry
    devices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    found: tuple[str, ...] = ()


def examine(entries: Sequence[LedgerEntry], limits: Limits | None = None) -> list[Examined]:
    """Load and probe every plugin that may load; the others stay as they are. Two at a time, in the order given.

    What takes long is told on standard error; on a terminal everything is.
    """
    from concurrent.futures import ThreadPoolExecutor

    stop = threading.Event()
    limits = Limits() if limits is None else limits
    with servers(_AT_ONCE) as free, ThreadPoolExecutor(max_workers=_AT_ONCE) as pool, _terminated_by_an_exception():

        def one(entry: LedgerEntry) -> Examined:
            if entry.stage != "found":
                return Examined(entry)
            server = free.pop()
            try:
                return _Child(entry, limits, stop).run(server)
            finally:
                free.append(server)

        try:
            return _compared(list(pool.map(one, entries)))
        except BaseException:
            stop.set()  # the children are in sessions of their own, so that an interrupt does not reach them
            raise


def _compared(examined: list[Examined]) -> list[Examined]:
    """With what two of them registered, each in its own process, told of both: their manifests didn't say it."""
    owners: dict[str, list[LedgerEntry]] = {}
    for one in examined:
        for name in one.names:
            owners.setdefault(name, []).append(one.entry)

    def told(one: Examined) -> Examined:
        twice = {name: [o for o in owners[name] if o is not one.entry] for name in one.names if len(owners[name]) > 1}
        if not twice or one.entry.is_fault:
            return one
        others = " and ".join(dict.fromkeys(f"{o.distribution} {o.version}" for found in twice.values() for o in found))
        cause, whole = (
            f"{others} registers the {what} too: which one a program gets depends on which is loaded first"
            for what in (first_of(list(twice)), "; ".join(twice))
        )
        blocked = ", ".join(dict.fromkeys(f'"{o.distribution}"' for found in twice.values() for o in found))
        hint = f"block = [{blocked}] under [plugins]; `graphdock opgen manifest` in both is to list it"
        return replace(one, entry=replace(one.entry, stage="duplicate", cause=cause, hint=hint, whole=whole))

    return [told(one) for one in examined]


@contextlib.contextmanager
def _terminated_by_an_exception() -> Iterator[None]:
    """SIGTERM and SIGHUP end this process as an interrupt does, once the children have ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    numbers = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = {number: signal.signal(number, end) for number in numbers if signal.getsignal(number) is signal.SIG_DFL}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Child:
    """One child, the plugin that it loads, and what it has told so far.

    Attributes:
      doing: the words for what it is at. ``device``: whose probe that is. ``since``: when it began. ``limit``: seconds for that.
      stage: where the plugin stands if the child ends now.
    """

    def __init__(self, entry: LedgerEntry, limits: Limits, stop: threading.Event) -> None:
        self.entry = entry
        self.limits = limits
        self.stop = stop
        self.devices: dict[str, Mapping[str, Any]] = {}
        self.done: Mapping[str, Any] | None = None
        self.names: tuple[str, ...] = ()
        self.found: tuple[str, ...] = ()
        self._read = 0
        self._begin("it loaded", limits.load)

    def _begin(self, doing: str, limit: float, stage: str = "import failed", device: str | None = None) -> None:
        self.doing, self.limit, self.stage, self.device = doing, limit, stage, device
        self.since, self._told = time.monotonic(), False

    def run(self, server: Server) -> Examined:
        with tempfile.TemporaryDirectory() as folder:
            file, errors = Path(folder, "told"), Path(folder, "errors")
            errors.touch()
            self._say("loads")
            child = server.start(self.entry.plugin, file, errors)
            try:
                in_time = self._watch(child, file)
            finally:
                child.end()
            self._listen(file)
            written = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return self._examined(child.returncode, in_time, written[-1:])

    def _watch(self, child: Child, file: Path) -> bool:
        """Until the child ends by itself, or is out of time. Whether it ended by itself."""
        while not child.ended(_LOOK):
            self._listen(file)
            spent = time.monotonic() - self.since
            if spent > self.limit or self.stop.is_set():
                return False
            if spent > self.limits.slow and not self._told:
                self._told = True
                text = f"is not done after {self.limits.slow:g} s: {self.doing}, and may take {self.limit:g} s"
                self._say(text, always=True)
        return True

    def _listen(self, file: Path) -> None:
        """Take in the whole lines that the child has written since."""
        if not file.exists():
            return
        with file.open("rb") as source:
            source.seek(self._read)
            lines = source.read().splitlines(keepends=True)
        for line in lines:
            if not line.endswith(b"\n"):
                return
            self._read += len(line)
            row = json.loads(line)
            if "doing" in row:
                self._begin(row["doing"], self.limits.probe, "probe failed", row.get("device"))
                if self.device is not None:
                    self._say(f"is probed for {self.device!r}")
            elif "found" in row:
                self.found = tuple(row["found"])
            elif "status" in row:
                self.devices[row.pop("device")] = row
                self._begin("it loaded", self.limits.load)
            else:
                self.done, self.names = row["entry"], tuple(row["names"])
                self._begin("it ended", ENDING)

    def _examined(self, status: int, in_time: bool, written: Sequence[str]) -> Examined:
        entry = self.entry
        if self.done is not None:
            added = self.done["added"]
            others = tuple((noun, n) for noun, n in added["others"])
            told = {name: self.done[name] for name in ("stage", "cause", "hint", "import_ms", "whole")}
            entry = replace(entry, **told, added=Added(tuple(added["devices"]), added["ops"], added["kernels"], others))
            return Examined(entry, self.devices, self.names, self.found)
        end = _ending(status) if in_time else f"it did not end in {self.limit:g} s"
        cause = "; it wrote: ".join([f"{end} while {self.doing}", *written])
        hint = (
            f'a fault of {entry.distribution} {entry.version}; `block = ["{entry.plugin}"]` under [plugins] silences it'
        )
        fault = {} if self.device is None else {self.device: {"status": "fault", "cause": cause, "hint": hint}}
        return Examined(replace(entry, stage=self.stage, cause=cause, hint=hint), {**self.devices, **fault})

    def _say(self, text: str, always: bool = False) -> None:
        if always or sys.stderr.isatty():
            click.echo(f"{self.entry.plugin} {text}", err=True)


def _ending(status: int) -> str:
    if status >= 0:
        return f"the process ended with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"the process died of {name}"
