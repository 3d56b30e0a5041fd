"""What ``generate`` writes: deterministic, complete, importable, left alone when nothing changed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import graphdock
import graphdock_opgen
import graphdock_templates
import pytest
from graphdock_opgen.generate import drift, plan, write

HOST = Path(graphdock.__file__).parent
STD = Path(importlib.util.find_spec("graphdock_std").origin).parent
SOURCES = [
    HOST.parent,
    Path(graphdock_opgen.__file__).parent.parent,
    Path(graphdock_templates.__file__).parent.parent,
    STD.parent,
]


def run(*args: str, cwd: Path, seed: str = "0", path: list[Path] | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(map(str, path or SOURCES))}
    return subprocess.run(
        [sys.executable, "-m", "graphdock_opgen", *args], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


def tree(directory: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(directory)): p.read_bytes()
        for p in sorted(directory.rglob("*"))
        if p.suffix in (".py", ".pyi", ".md")
    }


def test_a_second_run_writes_nothing(make) -> None:
    package = make()
    assert write(plan(package))
    before = {p: p.stat().st_mtime_ns for p in package.rglob("*.py")}
    again = plan(package)
    assert drift(again) == []
    assert write(again) == []
    assert {p: p.stat().st_mtime_ns for p in package.rglob("*.py")} == before


def test_output_is_equal_under_two_hash_seeds(make) -> None:
    trees = []
    for seed in ("1", "2"):
        package = make(f"pkg{seed}/graphdock_clipnorm")
        done = run("generate", str(package), cwd=package.parent, seed=seed)
        assert done.returncode == 0, done.stderr
        trees.append(tree(package))
    assert trees[0] == trees[1]
    assert "_gen/opdefs.py" in trees[0]


def test_what_no_spec_asks_for_is_removed(make) -> None:
    package = make()
    write(plan(package))
    stale = package / "_gen" / "old_ops.py"
    stale.write_text("x = 1\n")
    assert any("old_ops.py" in d for d in drift(plan(package)))
    assert write(plan(package)) == [stale]
    assert not stale.exists()


def test_works_with_the_hosts_own_gen_deleted(tmp_path: Path) -> None:
    """opgen makes the host's tables, so it must not need them."""
    host = tmp_path / "host" / "graphdock"
    shutil.copytree(HOST, host, ignore=shutil.ignore_patterns("__pycache__", "_gen"))
    assert not (host / "ops" / "_gen").exists()
    done = run("generate", str(host / "ops"), cwd=tmp_path, path=[tmp_path / "host", *SOURCES[1:]])
    assert done.returncode == 0, done.stderr
    made, committed = tree(host / "ops" / "_gen"), tree(HOST / "ops" / "_gen")
    assert made.keys() == committed.keys()
    assert made == committed, "the committed _gen has drifted: run `graphdock opgen generate`"


def test_works_with_stds_own_gen_deleted(tmp_path: Path) -> None:
    """Nothing of std is imported, so what is generated of it is not needed to generate it."""
    std = tmp_path / "std" / "graphdock_std"
    shutil.copytree(STD, std, ignore=shutil.ignore_patterns("__pycache__", "_gen"))
    (std / "__init__.py").write_text("raise ImportError('opgen reads this package, it does not import it')\n")
    done = run("generate", str(std), cwd=tmp_path, path=[*SOURCES[:3], std.parent])
    assert done.returncode == 0, done.stderr
    assert tree(std / "_gen") == tree(STD / "_gen"), "the committed _gen has drifted: run `graphdock opgen generate`"


def test_opdefs_import_needs_only_the_contract(make) -> None:
    package = make()
    write(plan(package))
    code = (
        "import sys; sys.path.insert(0, '.'); from graphdock_clipnorm._gen import opdefs, endpoints;"
        "d = opdefs.OPS['clipnorm.ClipNorm']();"
        "print(d, d.gradient, dict(d.gradient_kinds), d.source, d.package);"
        "print(sorted(m for m in ('numpy', 'yaml', 'jinja2', 'pydantic', 'graphdock.graph.graph') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=package.parent, capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == (
        "clipnorm.ClipNorm(x: T, limit: T) -> y: T graphdock_clipnorm._gen.gradients:clip_norm "
        "{'x': 'formula', 'limit': 'fn'} specs/clipnorm.yaml graphdock_clipnorm"
    )
    assert second == "[]"


def test_a_faulty_spec_writes_nothing_unless_asked_to(make) -> None:
    package = make("pkg", toy="graphdock_opdef: 1\nnamespace: toy\nops:\n- {name: A, summary: a.}\n- {name: B}\n")
    done = run("generate", str(package), cwd=package.parent)
    assert done.returncode == 1
    assert "toy.yaml:5:3: key 'summary' is missing" in done.stderr
    assert not (package / "_gen").exists()


def test_keep_going_leaves_out_the_faulty_op_only(make) -> None:
    text = (
        "graphdock_opdef: 1\nnamespace: toy\nops:\n- {name: A, summary: a.}\n"
        "- {name: B, summary: b., inputs: [{name: x, dtype: nope}]}\n"
    )
    package = make("pkg", toy=text)
    assert run("generate", "--keep-going", str(package), cwd=package.parent).returncode == 1
    text = (package / "_gen" / "opdefs.py").read_text()
    assert '"toy.A": lambda op: op(' in text and "toy.B" not in text
    (package / "specs" / "toy.yaml").write_text("graphdock_opdef: 1\n- broken")
    assert run("generate", "--keep-going", str(package), cwd=package.parent).returncode == 1
    assert (package / "_gen" / "toy_ops.py").exists(), "a file that can't be read takes nothing away"


def test_check_shows_drift_and_counts(make) -> None:
    package = make()
    assert run("generate", str(package), cwd=package.parent).returncode == 0
    clean = run("check", str(package), cwd=package.parent)
    assert (clean.returncode, clean.stdout) == (0, "gradients: formula 1, op 0, function 1, none 0, todo 0\n")
    target = package / "_gen" / "opdefs.py"
    target.write_text(target.read_text().replace("_args(y=", "_args(z="))
    dirty = run("check", str(package), cwd=package.parent)
    assert dirty.returncode == 1
    assert "-        _args(z=" in dirty.stdout and "+        _args(y=" in dirty.stdout


def test_counts_alone(make) -> None:
    package = make()
    done = run("generate", "--counts", str(package), cwd=package.parent)
    assert done.stdout == "gradients: formula 1, op 0, function 1, none 0, todo 0\n"
    assert not (package / "_gen").exists()


def test_pages_are_written_where_asked_and_are_no_drift(make, tmp_path: Path) -> None:
    package, faulty = make(), make("pkg", toy="graphdock_opdef: 1\nnamespace: toy\nops:\n- {name: B}\n")
    done = run("pages", "--out", "site", str(faulty), str(package), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "graphdock_clipnorm: 2 pages in site/graphdock_clipnorm\n")
    assert "toy.yaml:4:3: key 'summary' is missing" in done.stderr and not (tmp_path / "site" / "pkg").exists()
    assert "## clipnorm.ClipNorm" in (tmp_path / "site" / "graphdock_clipnorm" / "clipnorm.md").read_text()
    assert not (package / "_gen").exists()


@pytest.mark.parametrize("command", ["generate", "check", "pages", "schema", "manifest"])
@pytest.mark.sampled(2)
def test_every_command_has_help(command: str, tmp_path: Path) -> None:
    done = run(command, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "Usage: python -m graphdock_opgen" in done.stdout


def test_without_a_package_outside_the_repository(tmp_path: Path) -> None:
    done = run("generate", cwd=tmp_path)
    assert done.returncode == 2
    assert "no PKGDIR given" in done.stderr


def test_the_hosts_own_specs_have_no_fault_and_no_drift() -> None:
    result = plan(HOST / "ops")
    assert result.errors == ()
    assert drift(result) == []


def test_the_example_of_the_reference_page_has_no_fault(make) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "op-specs.md").read_text()
    example = page.partition("```yaml\n")[2].partition("```")[0]
    result = plan(make("graphdock_clipnorm", clipnorm=example))
    assert result.errors == ()
    assert str(result.counts) == "gradients: formula 1, op 0, function 1, none 0, todo 0"
