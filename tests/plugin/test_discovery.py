"""Finding plugins without importing them."""

import importlib.util
import os
import sys
import zipfile
from importlib import metadata

from graphdock.plugin.discovery import OWN, Found, discover, duplicates, find_spec, manifest_path, normalized


def found(plugin, distribution, version="1.0"):
    return Found(plugin, f"{plugin}_package.plugin", distribution, version, "/somewhere")


def test_graphdocks_own_plugins_are_found_first(site):
    site.plugin("aaa")
    found = [f for f in discover() if not f.opt_in]
    own = [f.plugin for f in found if f.distribution == OWN]
    assert [f.plugin for f in found[: len(own)]] == own == sorted(own) and {"std", "cpu"} <= set(own)
    assert ("aaa", "graphdock-aaa") in [(f.plugin, f.distribution) for f in found[len(own) :]]


def test_finding_a_plugin_runs_none_of_its_code(site):
    package = site.plugin("bomb", "raise SystemExit")
    (site.folder / package / "__init__.py").write_text("raise SystemExit")
    assert os.path.isfile(manifest_path(package))
    assert package not in sys.modules
    assert any(f.package == package for f in discover())


def test_one_distribution_on_two_places_of_the_path_counts_once(site, builder, tmp_path, monkeypatch):
    site.plugin("chip", version="1.0")
    second = builder.Site(tmp_path / "second")
    second.plugin("chip", version="2.0")
    link = tmp_path / "link"
    link.symlink_to(site.folder)
    monkeypatch.syspath_prepend(str(link))
    monkeypatch.setattr(sys, "path", [*sys.path, str(second.folder)])
    mine = [f for f in discover() if f.plugin == "chip"]
    assert [(f.version, f.location) for f in mine] == [("1.0", str(site.folder))]


def test_names_of_distributions_are_compared_as_indexes_do():
    assert normalized("GraphDock_My.Chip") == "graphdock-my-chip"


def test_duplicates():
    own, rival, one, two, lone = (
        found("cpu", OWN),
        found("cpu", "rival"),
        found("x", "one"),
        found("x", "two"),
        found("y", "one"),
    )
    assert duplicates([own, rival, one, two, lone]) == {rival: [own], one: [two], two: [one]}


def test_no_manifest_path_for_a_package_that_is_not_there():
    assert manifest_path("no_such_package_anywhere") is None


def test_a_spoilt_record_stops_nobody_else(site, builder):
    info = site.record("graphdock-spoilt", "1.0", {})
    (info / "entry_points.txt").write_text("[graphdock]\nno equals sign\n# a comment = x\n[other]\nthing = somewhere\n")
    bare = site.record("graphdock-bare", "1.0", {"bare": "bare_package.plugin:attr [extra]"})
    (bare / "METADATA").write_text("")
    site.plugin("fine")
    names = {f.plugin: (f.distribution, f.version, f.module) for f in discover()}
    assert names["fine"] == ("graphdock-fine", "1.0", "graphdock_fine.plugin")
    assert names["bare"] == ("bare-package", "0", "bare_package.plugin")
    assert "thing" not in names
    assert set(names) - {"queued"} == builder.shipped() | {"cuda", "llvm", "onednn", "ray", "triton", "fine", "bare"}


def test_odd_package_names_have_no_manifest():
    assert manifest_path("") is None
    assert manifest_path("not-a-name") is None


def test_a_distribution_whose_files_are_no_text_stops_nobody_else(site):
    site.plugin("chip")
    (info,) = site.folder.glob("*chip*.dist-info")
    for name, lame in (("lame", "entry_points.txt"), ("blind", "METADATA")):
        other = site.folder / f"graphdock_{name}-1.0.dist-info"
        other.mkdir()
        for file in ("METADATA", "entry_points.txt"):
            (other / file).write_bytes((info / file).read_bytes().replace(b"chip", name.encode()))
        (other / lame).write_bytes(b"\xff\xfe" + (other / lame).read_bytes())
    assert "chip" in {f.plugin for f in discover()}


def test_folders_are_listed_as_the_library_lists_them(site):
    site.plugin("chip")
    listed = {
        (point.name, point.value.partition(":")[0], normalized(dist.metadata["Name"]), dist.version)
        for dist in metadata.distributions()
        for point in dist.entry_points
        if point.group == "graphdock"
    }
    assert {(f.plugin, f.module, f.distribution, f.version) for f in discover() if not f.opt_in} == listed


def test_an_egg_is_found_and_what_is_no_name_of_a_folder_is_passed_over(site, tmp_path, monkeypatch):
    site.plugin("chip", version="3.0")
    (info,) = site.folder.glob("graphdock_chip-*.dist-info")
    egg = tmp_path / "chip.egg"
    egg.mkdir()
    info = info.rename(egg / "EGG-INFO")
    (info / "METADATA").rename(info / "PKG-INFO")
    monkeypatch.setattr(sys, "path", [b"/bytes", None, *sys.path, "", "/nowhere", str(egg)])
    assert [(f.version, f.location) for f in discover() if f.plugin == "chip"] == [("3.0", str(egg))]


def test_a_distribution_in_an_archive_is_found(site, tmp_path, monkeypatch):
    site.plugin("chip")
    site.plugin("zipped", version="2.0")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for file in ("METADATA", "entry_points.txt"):
            (path,) = site.folder.glob(f"graphdock_zipped-*.dist-info/{file}")
            archive.writestr(f"{path.parent.name}/{file}", path.read_text())
            path.unlink()
    monkeypatch.syspath_prepend(str(tmp_path / "all.zip"))
    names = {f.plugin: (f.version, f.location) for f in discover()}
    assert names["zipped"] == ("2.0", str(tmp_path / "all.zip")) and "chip" in names


def test_a_finder_of_distributions_is_asked(site, monkeypatch):
    site.plugin("hidden")
    (info,) = site.folder.glob("graphdock_hidden-*.dist-info")
    aside = info.rename(site.folder.parent / info.name)

    class Finder:
        @staticmethod
        def find_spec(*args):
            return None

        @staticmethod
        def find_distributions(context):
            return [metadata.Distribution.at(aside)]

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert "hidden" in {f.plugin for f in discover()}


def test_a_spec_is_that_which_python_finds_whatever_was_listed(site, tmp_path, monkeypatch):
    package, late = site.plugin("chip"), tmp_path / "late"
    late.mkdir()
    discover()
    monkeypatch.syspath_prepend(str(late))  # in no list
    shadow = late / package
    shadow.mkdir()
    (shadow / "__init__.py").write_text("")
    (late / "lone.py").write_text("")
    for name in (package, "lone", "numpy", "graphdock_cpu", "no_such_package_anywhere", "zlib", "os"):
        theirs, found = importlib.util.find_spec(name), find_spec(name)
        assert (found and found.origin) == (theirs and theirs.origin), name
    assert find_spec(package).origin == str(shadow / "__init__.py")
    monkeypatch.setattr(sys, "path", [f for f in sys.path if f != str(late)])
    assert find_spec(package).origin == str(site.folder / package / "__init__.py")
