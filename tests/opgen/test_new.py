"""``graphdock new``: what it makes builds a wheel, installs, and passes its own tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner
from graphdock.cli import cli
from graphdock_native import compile_library


def new(*args: str) -> object:
    return CliRunner().invoke(cli, ["new", *args])


def run(*command: str, cwd: Path, site: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    if site is not None:
        env["PYTHONPATH"] = str(site)
    return subprocess.run([sys.executable, *command], cwd=cwd, env=env, capture_output=True, text=True, check=False)


def install(root: Path, site: Path) -> list[str]:
    """Build a wheel offline, install it into ``site``, and return the names it holds."""
    done = run("-m", "hatchling", "build", "-t", "wheel", cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (root / "dist").glob("*.whl")
    pip = [
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-index",
        "--target",
        str(site),
    ]
    done = run(*pip, str(wheel), cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


#: Scaffold -> what `graphdock doctor` says that it adds.
SCAFFOLDS = {
    "": "1 kernel",
    "--device": "1 device, 5 kernels",
    "--device --asynchronous": "1 device, 5 kernels",
    "--device --asynchronous --ops": "1 device, 1 op, 7 kernels",
    "--ops": "1 op, 1 kernel",
    "--native": "1 kernel",
    "--native --ops": "1 op, 1 kernel",
    "--native --device --ops": "1 device, 1 op, 7 kernels",
    "--device --native": "1 device, 5 kernels",
    "--device --native --pattern": "1 device, 1 op, 7 kernels, 4 patterns",
    "--device --asynchronous --native": "1 device, 6 kernels",
    "--pattern": "1 op, 1 kernel, 4 patterns",
    "--pattern --device --asynchronous": "1 device, 1 op, 7 kernels, 4 patterns",
    "--compiler": "1 region compiler",
    "--executor": "1 executor",
    "--pass": "1 pass",
    "--placer": "1 placer",
    "--transport": "1 transport",
    "--graph-format": "1 graph format",
    "--endpoints": "",
    "--ops --endpoints --pass": "1 op, 1 kernel, 1 pass",
    "--pass --graph-format --endpoints": "1 pass, 1 graph format",
}
#: Scaffolds some of whose laws are refused: an interpreter without loops, a form of graphs for float32.
PARTIAL = {"--executor", "--graph-format"}


@pytest.fixture(scope="module")
def environment(environments, graphdock_wheel, tmp_path_factory):
    """An environment with graphdock's wheel alone, as an author has it: the checkout is not on its path."""
    place = environments.Environment(tmp_path_factory.mktemp("author"), [graphdock_wheel.parent])
    place.install(graphdock_wheel)
    return place


@pytest.mark.parametrize("flags", SCAFFOLDS, ids=lambda f: f.replace(" --", "+").lstrip("-") or "none")
@pytest.mark.sampled(30)
def test_the_printed_lines_of_a_scaffold_run_in_an_environment_of_wheels(tmp_path, environment, flags):
    made = environment.shell(f"graphdock new plugin my_chip {flags}", tmp_path)
    assert made.returncode == 0, made.stdout + made.stderr
    said, following = made.stdout.splitlines()
    assert said == "made graphdock-my-chip"
    root = tmp_path / "graphdock-my-chip"
    try:
        done = environment.shell(following.removeprefix("next: "), tmp_path)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr
        own, kit = (line for line in done.stdout.splitlines() if re.search(r"\d+ passed", line))
        assert "UnravelIndex" not in done.stdout, "ops that the package has nothing to do with are a number"
        assert "failed" not in own + kit and ("skipped" not in own or PARTIAL & set(flags.split()))
        checked = environment.shell("graphdock doctor --strict my_chip", root)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        (row,) = [line for line in checked.stdout.splitlines() if line.startswith("my_chip ")]
        assert re.split(r" {2,}", row.strip())[1:2] == ["registered"] and SCAFFOLDS[flags] == "".join(
            re.split(r" {2,}", row.strip())[3:]
        )
        readme = [
            line.partition("#")[0].strip()
            for line in (root / "README.md").read_text().splitlines()
            if line[:4] == "    "
        ]
        for line in readme:
            if line.startswith("graphdock "):
                again = environment.shell(line, root)
                assert again.returncode == 0, line + again.stdout + again.stderr
    finally:
        environment.uninstall("graphdock-my-chip")


@pytest.mark.parametrize("flags", SCAFFOLDS, ids=lambda f: f.replace(" --", "+").lstrip("-") or "none")
@pytest.mark.sampled(10)
def test_a_scaffold_is_tidy_and_its_wheel_whole(tmp_path, flags):
    made = new("plugin", "my_chip", *flags.split(), "--dir", str(tmp_path))
    assert made.exit_code == 0, made.output
    root = tmp_path / "graphdock-my-chip"
    assert not list(root.rglob("__pycache__"))
    ruff = ["-m", "ruff", "check", "--isolated", "--line-length=120", "--select=E,F,W", "--exclude=_gen", "."]
    lint = run(*ruff, cwd=root)
    assert lint.returncode == 0, lint.stdout
    names = install(root, tmp_path / "site")
    assert {"graphdock_my_chip/graphdock-plugin.toml", "graphdock_my_chip/py.typed"} <= set(names)
    specs = "--ops" in flags or "--pattern" in flags
    for file in ("_gen/opdefs.py", "_gen/public.pyi", "specs/my_chip.yaml"):
        assert (f"graphdock_my_chip/{file}" in names) == specs, file


@pytest.mark.parametrize(
    ("right", "typo", "said"),
    [
        ("g.y * factor", "g.y * facto", "no input, output, attribute or let named 'facto'"),
        ("  outputs:", "  outputz:", "unknown key 'outputz'"),
        ("shape: [2, 3]", "shape: [2, 3", "not YAML"),
        ("allow: [float32, float64]", "allow: [float32, flot64]", "flot64"),
        ("elementwise: true", "elementwize: true", "elementwize"),
    ],
)
@pytest.mark.sampled(3)
def test_one_typo_is_a_few_lines(tmp_path, right, typo, said):
    assert new("plugin", "my_chip", "--ops", "--dir", str(tmp_path)).exit_code == 0
    package = tmp_path / "graphdock-my-chip" / "src" / "graphdock_my_chip"
    spec = package / "specs" / "my_chip.yaml"
    assert right in spec.read_text()
    spec.write_text(spec.read_text().replace(right, typo))
    done = run("-m", "graphdock_opgen", "check", str(package), cwd=tmp_path)
    assert done.returncode == 1 and said in done.stderr and "my_chip.yaml:" in done.stderr
    assert len((done.stdout + done.stderr).splitlines()) <= 6, done.stdout + done.stderr


FIRST_OP = """\
import graphdock as tf
import graphdock_bench as b
import graphdock_bench.plugin

tf.default_host().register("bench", graphdock_bench.plugin)
y = b.soft_clip(b.halve(tf.constant([2.0]), factor=0.5), factor=3.0)
print(tf.Session().run(y))
"""


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param((), marks=pytest.mark.exhaustive),
        pytest.param(("--device",), marks=pytest.mark.exhaustive),
        ("--native",),
        ("--pass", "--executor"),
    ],
    ids="+".join,
)
def test_the_first_op_of_a_package_that_had_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    assert new("plugin", "bench", *flags, "--dir", str(tmp_path)).exit_code == 0
    root = tmp_path / "graphdock-bench"
    source = root / "src" / "graphdock_bench"
    if "--native" in flags:
        compile_library([root / "native" / "kernels.c"], source / "_native" / "kernels")
    before = {p: p.read_text() for p in source.rglob("*.py")}
    monkeypatch.chdir(root)
    for name in ("SoftClip", "Halve"):
        added = new("op", name)
        assert added.exit_code == 0, added.output
    for path, text in before.items():
        assert path.read_text().startswith(text), "what was there stays"
    for hook in ("register_ops", "register_kernels"):
        assert sum(p.read_text().count(f"def {hook}") for p in source.rglob("*.py")) == 1
    (root / "program.py").write_text(FIRST_OP)
    site = os.pathsep.join(filter(None, [str(root / "src"), os.environ.get("PYTHONPATH")]))
    done = run("program.py", cwd=root, site=site)
    assert done.returncode == 0 and done.stdout == "[3.]\n", done.stderr
    checked = run("-m", "graphdock_opgen", "manifest", "--check", str(source), cwd=root, site=site)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_package_without_a_name_gets_no_op(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "__init__.py").write_text("")
    done = new("op", "SoftClip", "--package", str(tmp_path / "lab"))
    assert done.exit_code == 2 and "holds neither specs/*.yaml nor graphdock-plugin.toml" in done.output
    monkeypatch.chdir(tmp_path)
    done = new("op", "SoftClip")
    assert done.exit_code == 2 and "no package with specs/ or graphdock-plugin.toml" in done.output


def test_new_op_appends_and_what_was_there_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert new("plugin", "lab", "--ops", "--dir", str(tmp_path)).exit_code == 0
    root = tmp_path / "graphdock-lab"
    source = root / "src" / "graphdock_lab"
    files = [source / "specs" / "lab.yaml", source / "kernels.py", source / "reference.py"]
    before = {f: f.read_text() for f in files}
    monkeypatch.chdir(root)
    added = new("op", "SoftClip")
    assert added.exit_code == 0, added.output
    for file, text in before.items():
        assert file.read_text().startswith(text) and len(file.read_text()) > len(text)
    site = tmp_path / "site"
    install(root, site)
    code = (
        "import graphdock as tf, graphdock_lab as lab\n"
        "x = tf.constant([1.0, 2.0])\n"
        "y = lab.soft_clip(x, factor=4.0)\n"
        "with tf.Session() as s: print(s.run([y, tf.gradients(y, [x])[0]]))"
    )
    done = run("-c", code, cwd=tmp_path, site=site)
    assert "4., 8." in done.stdout and "4., 4." in done.stdout, done.stdout + done.stderr
    again = new("op", "SoftClip")
    assert again.exit_code == 1 and "declares the op 'lab.SoftClip' already" in again.output


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("plugin", "My-Chip"), 2, "'My-Chip' is no plugin name"),
        (("op", "soft_clip"), 2, "'soft_clip' is no op name"),
        (("op", "SoftClip"), 2, "no package with specs/ or graphdock-plugin.toml"),
    ],
)
def test_wrong_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], code: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = new(*args)
    assert (result.exit_code, message in result.output) == (code, True), result.output


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "graphdock-lab").mkdir()
    result = new("plugin", "lab", "--dir", str(tmp_path))
    assert result.exit_code == 1 and "exists" in result.output
    assert list((tmp_path / "graphdock-lab").iterdir()) == []


@pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")
@pytest.mark.exhaustive  # so does the page on them
def test_an_op_with_a_kernel_in_triton_passes_its_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert new("plugin", "lab", "--ops", "--dir", str(tmp_path)).exit_code == 0
    root = tmp_path / "graphdock-lab"
    monkeypatch.chdir(root)
    added = new("op", "SoftClip", "--triton")
    assert added.exit_code == 0 and "add graphdock-triton to the dependencies" in added.output, added.output
    again = new("op", "SoftClip", "--triton")
    assert again.exit_code == 1 and "declares the op 'lab.SoftClip' already" in again.output
    site = tmp_path / "site"
    names = install(root, site)
    assert "graphdock_lab/soft_clip_triton.py" in names
    done = run("-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", cwd=root, site=site)
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout + done.stderr
    lint = run(
        "-m", "ruff", "check", "--isolated", "--line-length=120", "--select=E,F,W", "--exclude=_gen", ".", cwd=root
    )
    assert lint.returncode == 0, lint.stdout


def test_a_kernel_in_triton_is_for_ops_of_a_name(tmp_path: Path) -> None:
    done = new("op", "--from", "module:function", "--triton")
    assert done.exit_code == 2 and "--triton goes with a NAME" in done.output
