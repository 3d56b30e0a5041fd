"""The packages of examples/plugins: built into wheels and installed into folders of their own, without an index."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLUGINS = ROOT / "examples" / "plugins"


def run(*command, cwd, site=None, **variables):
    """A command of Python's, in a folder, with what is installed in ``site``."""
    path = [str(site)] if site else []
    inherited = os.environ.get("PYTHONPATH")
    env = {**os.environ, "NO_COLOR": "1", **variables}
    env["PYTHONPATH"] = os.pathsep.join(path + ([inherited] if inherited else []))
    env.pop("PYTEST_XDIST_WORKER", None)
    return subprocess.run([sys.executable, *command], cwd=cwd, env=env, capture_output=True, text=True, check=False)


def installed(name, folder):
    """Copy a package, generate what its specs say, build its wheel, install that; returns the copy and where it is installed."""
    package, site = folder / name, folder / "site"
    shutil.copytree(PLUGINS / name, package, ignore=shutil.ignore_patterns("__pycache__", "dist", "build", "_gen"))
    if (package / "src" / f"graphdock_{name}" / "specs").is_dir():
        made = run("-m", "graphdock", "opgen", "generate", f"src/graphdock_{name}", cwd=package)
        assert made.returncode == 0, made.stdout + made.stderr
    build = run("-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist"), cwd=package)
    assert build.returncode == 0, build.stdout + build.stderr
    (wheel,) = (folder / "dist").glob("*.whl")
    options = ["-q", "--disable-pip-version-check", "--no-deps", "--no-index", "--target", str(site)]
    pip = run("-m", "pip", "install", *options, str(wheel), cwd=folder)
    assert pip.returncode == 0, pip.stdout + pip.stderr
    return package, site


def lines_of_code(package):
    """Lines of the package's sources that hold code: neither blank, nor comment, nor docstring; nothing generated."""
    total = 0
    for file in sorted((package / "src").rglob("*.py")):
        if "_gen" in file.parts:
            continue
        text = file.read_text()
        said = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
                said.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
        lines = enumerate(text.splitlines(), 1)
        total += sum(bool(line.strip()) and not line.strip().startswith("#") and n not in said for n, line in lines)
    return total
