"""Every code block of the README and of docs/ runs.

A block after ``<!-- file: PATH -->`` is written to that file, one after ``<!-- appended to: PATH -->`` to its end. A
``python`` block runs in the page's own namespace, a ``console`` block line by line in the page's own folder; ``<!-- exit: N
-->`` before it says which status its last line has, ``<!-- output -->`` that what it shows is exactly what is printed; a
block of no kind after ``<!-- output -->`` is what the ``python`` block before it prints. A ``python`` block after ``<!--
saved as: PATH -->`` is run and written to that file. A block after ``<!-- from: PATH -->`` is a part of that file of
``examples/plugins``, which a page that goes there has a copy of. ``pip install -e`` of the package that the page makes is
done into a folder of the page's own, without an index, and what changes in its ``src`` is copied there; a conformance run
takes its quick choice of cases; a block after ``<!-- not run -->`` is not run.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import graphdock.plugin.host as host_module
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
#: Pages of words alone.
WORDS = {"docs/README.md", "docs/older-names.md"}
PAGES = [
    p
    for p in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "docs" / "errors" / "README.md")
    if str(p.relative_to(ROOT)) not in WORDS
]
#: Pages that make, install and check whole packages, as others do that are run every day.
LONG = {
    "write-a-device-plugin.md",
    "write-a-triton-kernel.md",
    "write-an-asynchronous-device.md",
    "write-a-native-device.md",
    "write-a-native-kernel.md",
    "write-an-op-in-python.md",
}
BLOCK = re.compile(r"(?:<!-- (?P<mark>[^>]*) -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass
class Page:
    folder: Path
    site: Path
    cwd: Path
    editable: list = field(default_factory=list)
    names: dict = field(default_factory=lambda: {"__name__": "page"})

    def environment(self):
        path = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        env = {**os.environ, "PATH": os.pathsep.join(path), "PYTHONPATH": str(self.site), "NO_COLOR": "1"}
        env.pop("GRAPHDOCK_DEBUG", None)
        env.pop("PYTEST_XDIST_WORKER", None)
        env["PYTEST_ADDOPTS"] = "-p no:hypothesispytest"  # of this repository, and a second to load
        return env

    def console(self, text, status):
        commands = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
        outputs = []
        for number, command in enumerate(commands):
            if command.startswith("cd "):
                self.cwd = (self.cwd if (self.cwd / command[3:]).is_dir() else self.folder) / command[3:]
                continue
            if command.startswith("pip install ") and all(map(importlib.util.find_spec, command.split()[2:])):
                continue  # it is here
            if command.startswith("pip install -e"):
                options = "-q --no-deps --no-build-isolation --no-index --upgrade"
                command = f"{sys.executable} -m pip install {options} --target {self.site} ."
                self.editable.append(self.cwd / "src")
            assert not command.startswith("pip install "), (
                f"{command}: a page of the tests installs nothing from an index"
            )
            want = status if number == len(commands) - 1 else 0
            command = re.sub(r"^pytest\b", f"{sys.executable} -m pytest -q", command)
            if "--graphdock-backend" in command:
                command += " --graphdock-quick"
            done = subprocess.run(
                ["bash", "-c", command], cwd=self.cwd, env=self.environment(), capture_output=True, text=True
            )
            assert done.returncode == want, f"$ {command}\n{done.stdout}\n{done.stderr}"
            for source in self.editable:
                shutil.copytree(source, self.site, dirs_exist_ok=True)
            outputs.append(done.stdout)
        return outputs


def stands_in(text, path):
    """Whether the lines of an excerpt, however far they are indented, follow each other in a file."""
    lines = [line.strip() for line in path.read_text().splitlines()]
    part = [line.strip() for line in text.splitlines()]
    return any(lines[at : at + len(part)] == part for at in range(len(lines) - len(part) + 1))


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.name, marks=[pytest.mark.exhaustive] * (p.name in LONG)) for p in PAGES]
)
def test_page(path, tmp_path, monkeypatch):
    monkeypatch.setattr(host_module, "_default", host_module.Host())  # what a page registers stays with the page
    page = Page(tmp_path, tmp_path / ".site", tmp_path)
    page.site.mkdir()
    blocks = list(BLOCK.finditer(path.read_text()))
    assert blocks
    if "$ cd examples/" in path.read_text():
        shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__", "dist", "build"))
    printed = io.StringIO()
    for found in blocks:
        mark, kind, text = found["mark"] or "", found["kind"], found["text"]
        if mark == "not run":
            continue
        if mark.startswith("from: "):
            assert stands_in(text, EXAMPLES / "plugins" / mark[6:]), f"{mark[6:]} does not hold this:\n{text}"
        elif mark.startswith("file: "):
            target = tmp_path / mark[6:]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        elif mark.startswith("appended to: "):
            with (tmp_path / mark[13:]).open("a") as file:
                file.write("\n\n" + text)
        elif kind == "python":
            if mark.startswith("saved as: "):
                (tmp_path / mark[10:]).write_text(text)
            monkeypatch.chdir(tmp_path)
            import graphdock as tf

            graph = page.names.setdefault("__graph__", tf.Graph())
            printed = io.StringIO()
            with graph.as_default(), contextlib.redirect_stdout(printed):
                exec(compile(text, f"{path.name}", "exec"), page.names)
        elif not kind and mark == "output":
            assert printed.getvalue().strip() == text.strip()
        elif kind == "console":
            status = int(mark[6:]) if mark.startswith("exit: ") else 0
            outputs = page.console(text, status)
            if mark == "output":
                shown = "\n".join(line for line in text.splitlines() if not line.startswith("$ "))
                assert outputs[-1].strip() == shown.strip()
