"""What the distributions say of themselves: license, classifiers, and no address that leads nowhere."""

from __future__ import annotations

import email
import tomllib
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from graphdock.cli import cli
from trove_classifiers import classifiers

ROOT = Path(__file__).parents[2]
PROJECTS = [ROOT, *sorted(p.parent for p in (ROOT / "plugins").glob("*/pyproject.toml"))]
LICENSE = (ROOT / "LICENSE").read_text()


def project(folder):
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("folder", PROJECTS, ids=lambda p: project(p)["name"])
def test_a_distribution_says_what_it_is(folder):
    said = project(folder)
    assert (said["license"], said["license-files"]) == ("Apache-2.0", ["LICENSE"])
    assert (folder / "LICENSE").read_text() == LICENSE
    assert "urls" not in said  # of which none is known
    assert set(said["classifiers"]) <= set(classifiers)
    # the expression says it; an index refuses both
    assert not [c for c in said["classifiers"] if c.startswith("License ::")]
    least = said["requires-python"].removeprefix(">=")
    assert f"Programming Language :: Python :: {least}" in said["classifiers"]


def test_the_license_is_whole():
    assert LICENSE.lstrip().startswith("Apache License\n                           Version 2.0, January 2004")
    assert "END OF TERMS AND CONDITIONS" in LICENSE and LICENSE.rstrip().endswith("limitations under the License.")


@pytest.mark.parametrize("folder", PROJECTS, ids=lambda p: project(p)["name"])
def test_the_wheel_holds_its_license_and_its_readme(folder, tmp_path):
    from hatchling.builders.wheel import WheelBuilder

    (wheel,) = WheelBuilder(str(folder)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        said = email.message_from_bytes(archive.read(name))
        assert archive.read(name.replace("METADATA", "licenses/LICENSE")).decode() == LICENSE
    assert (said["License-Expression"], said["License-File"]) == ("Apache-2.0", "LICENSE")
    assert said["Description-Content-Type"] == "text/markdown"
    assert said.get_payload(decode=True).decode() == (folder / "README.md").read_text()


@pytest.mark.parametrize("flags", [(), ("--native",)], ids=["plain", "native"])
def test_a_new_package_says_what_it_is_and_leaves_its_license_to_its_author(tmp_path, flags):
    made = CliRunner().invoke(cli, ["new", "plugin", "chip", *flags, "--dir", str(tmp_path)])
    assert made.exit_code == 0, made.output
    said = project(tmp_path / "graphdock-chip")
    assert said["keywords"] == ["graphdock"] and set(said["classifiers"]) <= set(classifiers)
    assert not {"license", "license-files", "urls"} & said.keys()


def test_the_change_log_begins_with_what_is_not_released_and_has_this_version():
    heads = [line[3:] for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")]
    assert heads[0] == "Unreleased"
    assert heads[1].split(" - ")[0] == project(ROOT)["version"]
