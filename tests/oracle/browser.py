"""A headless Chromium, told what to do through two pipes (the DevTools protocol): a small client for tests."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["Browser", "browser", "chromium"]


def chromium() -> str | None:
    """Path of a Chromium that is installed, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """One page. Messages are JSON texts that end with a zero byte."""

    def __init__(self, to: int, of: int) -> None:
        self._to = to
        self._of = of
        self._rest = b""
        self._ids = itertools.count(1)
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method: str, **params: Any) -> Any:
        """The answer to a command of the protocol."""
        ident = next(self._ids)
        message = {"id": ident, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 60
        while True:
            while b"\0" in self._rest:
                text, _, self._rest = self._rest.partition(b"\0")
                answer = json.loads(text)
                if answer.get("id") == ident:
                    assert "error" not in answer, answer["error"]
                    return answer["result"]
            assert select.select([self._of], [], [], max(deadline - time.monotonic(), 0))[0], f"no answer to {method}"
            part = os.read(self._of, 1 << 16)
            assert part, "the browser has ended"
            self._rest += part

    def open(self, url: str) -> None:
        """Go to a page."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)

    def value(self, script: str) -> Any:
        """What an expression of JavaScript gives in the page; null where it raises."""
        text = f"(() => {{ try {{ return {script} }} catch (e) {{ return null }} }})()"
        answer = self.call("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
        return answer["result"].get("value")

    def wait(self, script: str, seconds: float = 60) -> Any:
        """What an expression gives once that is true."""
        deadline = time.monotonic() + seconds
        while True:
            found = self.value(script)
            if found:
                return found
            assert time.monotonic() < deadline, f"still not true after {seconds} s: {script}"
            select.select([], [], [], 0.2)


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile in a folder, which reaches this machine only."""
    program = chromium()
    assert program is not None
    theirs_in, to = os.pipe()
    of, theirs_out = os.pipe()
    # the protocol's pipes are the descriptors 3 and 4
    command = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
    flags = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        "--window-size=1400,1000",
        f"--user-data-dir={profile}",
        "--remote-debugging-pipe",
    ]
    process = subprocess.Popen(
        ["bash", "-c", command, program, *flags],
        pass_fds=(theirs_in, theirs_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Browser(to, of)
    finally:
        process.kill()
        process.wait()
        os.close(to)
        os.close(of)
