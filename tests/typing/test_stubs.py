"""What a type checker sees: a program passes ``mypy --strict``, mistakes are found at their lines, stubs hold every name.

``program.py`` runs too, so that what the checker accepts is a program. Everything is checked in one run of mypy.
"""

from __future__ import annotations

import ast
import fcntl
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import graphdock as tf
import pytest
from click.testing import CliRunner
from graphdock.cli import cli
from graphdock.plugin.host import Host

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
GRAPHDOCK = Path(tf.__file__).parent
#: Pages whose Python is checked as one program each.
PAGES = ("write-an-op-in-python.md", "typing.md")
BLOCK = re.compile(r"(?:<!-- (?P<mark>[^>]*) -->\n)?```python\n(?P<text>.*?)^```$", re.M | re.S)
LINE = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+): (?P<kind>error|note): (?P<text>.*?)(?:  \[(?P<code>[\w-]+)\])?$")

USES_A_PACKAGE = """\
import graphdock as tf
import graphdock_my_lab as lab

x = tf.placeholder(tf.float32, [2])
y: tf.Tensor = lab.scale(x, factor=2.0)
lab.scale(x, factr=2.0)  # E: call-arg
lab.scale(x, factor="two")  # E: arg-type
lab.scala(x)  # E: attr-defined
"""


def module_of(page):
    return f"page_{page.replace('-', '_').removesuffix('.md')}.py"


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """File name -> lines that mypy says of it: (line, kind, text, code). It runs once for all workers of a run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "typing"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = folder / "said.json"
        if not said.exists():
            said.write_text(json.dumps(check(folder)))
    return {name: [tuple(line) for line in lines] for name, lines in json.loads(said.read_text()).items()}


def check(folder):
    made = CliRunner().invoke(cli, ["new", "plugin", "my_lab", "--ops", "--dir", str(folder)])
    assert made.exit_code == 0, made.output
    files = [HERE / name for name in ("program.py", "misuse.py", "reveals.py")]
    for page in PAGES:
        text = (ROOT / "docs" / page).read_text()
        parts = [m["text"] for m in BLOCK.finditer(text) if not (m["mark"] or "").startswith(("file", "not"))]
        files.append(folder / module_of(page))
        files[-1].write_text("\n\n".join(parts))
    files.append(folder / "uses_a_package.py")
    files[-1].write_text(USES_A_PACKAGE)
    (folder / "mypy.ini").write_text("[mypy]\nstrict = true\nfollow_imports = silent\n")
    sources = [GRAPHDOCK.parent, *sorted((ROOT / "plugins").iterdir()), folder / "graphdock-my-lab" / "src"]
    environment = {**os.environ, "MYPYPATH": os.pathsep.join(map(str, sources)), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "mypy", "--config-file", str(folder / "mypy.ini"), *map(str, files)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert "Found " in done.stdout, done.stdout + done.stderr
    found = {file.name: [] for file in files}
    for line in done.stdout.splitlines():
        match = LINE.match(line)
        if match is None:
            assert line.startswith(("Found ", "Success")), done.stdout + done.stderr
            continue
        found[Path(match["file"]).name].append((int(match["line"]), match["kind"], match["text"], match["code"]))
    return found


def errors(lines):
    return [(line, code) for line, kind, _, code in lines if kind == "error"]


def planted(text):
    """Line -> the error's code, of lines that end in ``# E: code``."""
    marks = [(i, re.search(r"# E: ([\w-]+)", line)) for i, line in enumerate(text.splitlines(), 1)]
    return [(i, mark[1]) for i, mark in marks if mark]


def test_a_program_passes_strict(checked):
    assert errors(checked["program.py"]) == []
    assert len((HERE / "program.py").read_text().splitlines()) >= 60


def test_the_program_runs(process_host):
    process_host(Host())
    assert runpy.run_path(str(HERE / "program.py"))["main"]() > 0


def test_each_misuse_is_found_at_its_line(checked):
    want = planted((HERE / "misuse.py").read_text())
    assert len(want) >= 30
    assert errors(checked["misuse.py"]) == want


def test_what_a_checker_says_things_are(checked):
    lines = (HERE / "reveals.py").read_text().splitlines()
    want = [(i, line.partition("  # ")[2]) for i, line in enumerate(lines, 1) if line.startswith("reveal_type")]
    said = [(line, re.search(r'Revealed type is "(.*)"', text)) for line, _, text, _ in checked["reveals.py"]]
    got = [(line, re.sub(r"[\w.]+\.(?=\w)", "", match[1])) for line, match in said if match]
    assert errors(checked["reveals.py"]) == []
    assert got == want


@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_pages_pass_strict(checked, page):
    assert errors(checked[module_of(page)]) == []


def test_a_package_of_ops_has_types(checked):
    assert errors(checked["uses_a_package.py"]) == planted(USES_A_PACKAGE)


def exported(path):
    tree = ast.parse(path.read_text())
    (listed,) = [n.value for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "__all__"]
    imported = [a.asname for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names]
    assert sorted(imported) == ast.literal_eval(listed)
    return imported


def test_the_facade_stub_holds_what_the_facade_has():
    assert sorted([*exported(GRAPHDOCK / "__init__.pyi"), "__version__"]) == sorted(dir(tf))


@pytest.mark.parametrize("space", sorted(p.stem for p in (GRAPHDOCK / "_facade").glob("[a-z]*.pyi")))
def test_so_does_a_namespaces(space):
    assert sorted(exported(GRAPHDOCK / "_facade" / f"{space}.pyi")) == sorted(dir(getattr(tf, space)))


def test_and_that_of_graphdock_ops():
    assert sorted(exported(GRAPHDOCK / "ops" / "__init__.pyi")) == sorted(dir(tf.ops))


def test_stubs_name_what_is_there():
    for path in (
        GRAPHDOCK / "__init__.pyi",
        GRAPHDOCK / "ops" / "__init__.pyi",
        *(GRAPHDOCK / "_facade").glob("*.pyi"),
    ):
        for node in ast.parse(path.read_text()).body:
            if (
                isinstance(node, ast.ImportFrom)
                and node.module != "graphdock"
                and not node.module.startswith("graphdock._facade")
            ):
                module = __import__(node.module, fromlist=["_"])
                assert all(hasattr(module, alias.name) for alias in node.names), (path, node.lineno)
