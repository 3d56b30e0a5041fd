"""Clean environments for tests that install wheels, of ``make wheelhouse`` and of their own making; nothing comes from an index.

``tests/conftest.py`` imports this by path; it is no test module.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

WHEELHOUSE = Path(__file__).parents[2] / ".wheelhouse"


def environ(**extra):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GRAPHDOCK_", "PIP_", "PYTHON"))}
    return {**kept, "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_COMPILE": "1", **extra}


def pip(*arguments):
    command = [sys.executable, "-m", "pip", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environ(), check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def wheel(project, out):
    before = set(out.glob("*.whl"))
    pip("wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", out, project)
    (made,) = set(out.glob("*.whl")) - before
    return made


class Environment:
    """A virtual environment without pip of its own; commands run in a folder of their own. ``links``: folders of more wheels."""

    def __init__(self, folder, links=()):
        self.folder, self.links = folder, links
        self.python = folder / "venv" / "bin" / "python"
        self.work = folder / "work"
        self.work.mkdir()
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)

    def install(self, *wheels):
        pip("--python", self.python, "install", "--quiet", "--no-index", "--find-links", WHEELHOUSE, *wheels)

    def uninstall(self, name):
        pip("--python", self.python, "uninstall", "--quiet", "--yes", name)

    def run(self, *arguments, **variables):
        return subprocess.run(
            [str(self.python), *arguments],
            capture_output=True,
            text=True,
            cwd=self.work,
            env=environ(**variables),
            check=False,
        )

    def shell(self, line, cwd, **variables):
        """What a person types in the environment: ``pip``, ``pytest`` and ``graphdock`` are its own, and wheels its index."""
        pip = self.python.parent / "pip"
        if not pip.exists():
            pip.write_text(f'#!/bin/sh\nexec {sys.executable} -m pip --python {self.python} "$@"\n')
            pip.chmod(0o755)
        links = " ".join(map(str, (WHEELHOUSE, *self.links)))
        path = os.pathsep.join((str(self.python.parent), os.defpath, os.environ["PATH"]))
        offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": links, "PIP_QUIET": "1", "PATH": path}
        environment = environ(**offline, VIRTUAL_ENV=str(self.folder / "venv"), **variables)
        command = ["bash", "-c", line]
        return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)

    def plugins(self, **variables):
        done = self.run("-m", "graphdock", "plugins", "--json", **variables)
        assert done.returncode == 0, done.stderr
        return {row["plugin"]: row for row in json.loads(done.stdout)}
