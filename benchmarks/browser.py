"""A page in a headless Chromium, driven over pipes: no driver is downloaded, and nothing but the page's own file is loaded."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["Page", "browser", "opened"]

_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-precise-memory-info")


def browser() -> str | None:
    """The path of a Chromium on this machine; None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page:
    """One page; one thread uses it. Errors of its scripts, and what they print as errors, are in ``errors``."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read, self._held, self._number = write, read, b"", 0
        self._session: dict[str, str] = {}
        self.errors: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        found = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": found["sessionId"]}
        for domain in ("Runtime", "Log", "Page"):
            self._call(f"{domain}.enable")

    def _call(self, method: str, **parameters: Any) -> Any:
        """Ask the browser, and wait for its answer (https://chromedevtools.github.io/devtools-protocol)."""
        self._number += 1
        text = json.dumps({"id": self._number, "method": method, "params": parameters, **self._session})
        os.write(self._write, text.encode() + b"\0")
        while True:
            while b"\0" not in self._held:
                more = os.read(self._read, 1 << 16)
                if not more:
                    raise RuntimeError(f"the browser ended during {method}")
                self._held += more
            message, _, self._held = self._held.partition(b"\0")
            found = json.loads(message)
            self._heard(found)
            if found.get("id") == self._number:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']['message']}")
                return found["result"]

    def _heard(self, found: Any) -> None:
        if found.get("method") == "Runtime.exceptionThrown":
            details = found["params"]["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif found.get("method") == "Log.entryAdded" and found["params"]["entry"]["level"] == "error":
            self.errors.append(found["params"]["entry"]["text"])

    def size(self, width: int, height: int, dark: bool = False) -> None:
        """Size of the window in pixels, and whether the reader likes dark pages."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._call("Emulation.setEmulatedMedia", features=features)

    def open(self, path: Path, fragment: str = "") -> float:
        """Load a file; seconds until it has been drawn."""
        self._call("Page.navigate", url=path.resolve().as_uri() + fragment)
        self.evaluate("new Promise(r=>document.readyState==='complete'?r():addEventListener('load',r))")
        milliseconds: float = self.evaluate(f"new Promise(r=>{_DRAWN.format('r(performance.now())')})")
        return milliseconds / 1e3

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript, awaited."""
        found = self._call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"]["description"])
        return found["result"].get("value")

    def seconds(self, action: str) -> float:
        """Seconds from a statement of JavaScript until what it changes has been drawn."""
        drawn = _DRAWN.format("r(performance.now()-t)")
        milliseconds: float = self.evaluate(f"new Promise(r=>{{const t=performance.now();{action};{drawn}}})")
        return milliseconds / 1e3

    def click(self, x: float, y: float) -> float:
        """Press and release the mouse; seconds until what that changes has been drawn."""
        start = time.perf_counter()
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            pressed = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **pressed)
        self.evaluate(f"new Promise(r=>{_DRAWN.format('r()')})")
        return time.perf_counter() - start

    def heap(self) -> int:
        """Bytes of its objects."""
        nbytes: int = self.evaluate("performance.memory.usedJSHeapSize")
        return nbytes

    def screenshot(self, path: Path) -> None:
        """Write what is in its window as a PNG."""
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"]))


#: Runs a statement behind the frame that draws what was changed.
_DRAWN = "requestAnimationFrame(()=>requestAnimationFrame(()=>setTimeout(()=>{{{}}})))"


@contextmanager
def opened(chromium: str) -> Iterator[Page]:
    """A page of a browser that is ended behind it."""
    theirs, write = os.pipe()
    read, answers = os.pipe()

    def prepare() -> None:
        os.dup2(os.dup(theirs), 3)
        os.dup2(os.dup(answers), 4)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            [chromium, *_FLAGS, "--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=prepare,
            start_new_session=True,
        )
        try:
            os.close(theirs)
            os.close(answers)
            yield Page(write, read)
        finally:
            os.close(write)  # which ends it
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(read)
