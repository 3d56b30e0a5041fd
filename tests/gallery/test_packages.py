"""The gallery's packages, as their users have them: built, installed, examined, run."""

from __future__ import annotations

import pytest
from packages import PLUGINS, installed, lines_of_code, run

NAMES = ("frames", "tandem", "slate")


@pytest.fixture(scope="module", params=NAMES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def made(name, tmp_path_factory):
    """The package's folder, and the folder that it is installed in."""
    if name == "slate":
        pytest.importorskip("cffi")
    return installed(name, tmp_path_factory.mktemp(name))


def test_its_wheel_holds_what_is_read_without_importing(name, made):
    package = made[1] / f"graphdock_{name}"
    assert (package / "graphdock-plugin.toml").is_file() and (package / "py.typed").is_file()
    if (PLUGINS / name / "src" / package.name / "specs").is_dir():
        assert (package / "specs" / f"{name}.yaml").is_file() and (package / "_gen" / "opdefs.py").is_file()


@pytest.mark.sampled(4)
def test_its_own_tests_pass(made):
    root, site = made
    done = run("-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", cwd=root, site=site)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout and "skipped" not in done.stdout


@pytest.mark.exhaustive
def test_it_conforms(name, made, tmp_path):
    _, site = made
    suite = ["-m", "pytest", "-q", "-p", "graphdock_testing.pytest_plugin", "-p", "no:cacheprovider"]
    done = run(
        *suite,
        "--graphdock-quick",
        "--graphdock-backend",
        name,
        cwd=tmp_path,
        site=site,
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    assert " 0 failed" in done.stdout
    if name in ("tandem", "slate"):
        assert "races: every case was watched" in done.stdout


@pytest.mark.sampled(3)
def test_nothing_is_to_be_said_of_it(name, made):
    root, site = made
    package = root / "src" / f"graphdock_{name}"
    commands = [["doctor", "--strict", name], ["opgen", "manifest", str(package), "--check"]]
    if (package / "specs").is_dir():
        commands.append(["opgen", "check", str(package)])
    for command in commands:
        done = run("-m", "graphdock", *command, cwd=root, site=site)
        assert done.returncode == 0, done.stdout + done.stderr


def test_it_is_small(name):
    assert lines_of_code(PLUGINS / name) < 300
