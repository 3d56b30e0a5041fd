"""Which of the installed plugins may load, decided over plain records.

Two installed packages that state one name: graphdock's own has it, or neither loads, whichever was loaded first.
"""

from __future__ import annotations

import dataclasses
import json

import graphdock as tf
import pytest
from click.testing import CliRunner
from graphdock.cli import cli
from graphdock.errors import AlreadyExistsError, ConfigError, PluginError, UnknownOpError
from graphdock.plugin.admission import Admission
from graphdock.plugin.discovery import OWN, Found
from graphdock.plugin.host import Host
from graphdock.plugin.manifest import MARKER


def found(plugin, distribution=None, **fields):
    return Found(plugin, f"{plugin}_package.plugin", distribution or f"graphdock-{plugin}", "1.0", "/there", **fields)


CPU, EXTRA, OTHER = found("cpu", OWN), found("extra"), found("other")
OPTIONAL = found("queued", OWN, opt_in=True)


def decided(admission, *installed):
    states = admission.states([*(installed or (CPU, EXTRA, OTHER)), OPTIONAL])
    return {s.found: (s.stage, s.cause) for s in states}


def stages(admission, *installed):
    return [(f.plugin, stage) for f, (stage, _) in decided(admission, *installed).items() if f is not OPTIONAL]


def test_all_may_load_but_what_is_shipped_blocked():
    assert not Admission().limits
    assert decided(Admission()) == {
        CPU: ("found", None),
        EXTRA: ("found", None),
        OTHER: ("found", None),
        OPTIONAL: ("blocked", "graphdock ships it blocked"),
    }


@pytest.mark.parametrize("written", ["graphdock-extra", "Graphdock_Extra", "extra"])
def test_plugins_and_distributions_are_named_as_package_indexes_compare_them(written):
    block, allow = Admission(block=(written,)), Admission(allow=(written,))
    assert block.limits and allow.limits
    assert stages(block) == [("cpu", "found"), ("extra", "blocked"), ("other", "found")]
    assert stages(allow) == [("cpu", "found"), ("extra", "found"), ("other", "blocked")]
    assert allow.allows(EXTRA) and not allow.allows(OTHER) and not Admission().allows(EXTRA)


def test_block_stops_graphdocks_own_too_and_goes_before_allow():
    admission = Admission(allow=("extra",), block=("cpu", "extra"))
    assert stages(admission) == [("cpu", "blocked"), ("extra", "blocked"), ("other", "blocked")]
    assert decided(admission)[EXTRA][1] == "block names 'extra'"
    assert decided(admission)[OTHER][1] == "allow does not name it"


def test_allowing_what_is_shipped_blocked_blocks_no_other():
    assert decided(Admission(allow=("queued",))) == {
        plugin: ("found", None) for plugin in (CPU, EXTRA, OTHER, OPTIONAL)
    }
    assert stages(Admission(allow=("queued", "extra")))[-1] == ("other", "blocked")
    assert stages(Admission(allow=())) == [("cpu", "found"), ("extra", "blocked"), ("other", "blocked")]


def test_a_reason_says_where_it_was_written():
    admission = Admission(("extra",), ("cpu",), origins={"cpu": "graphdock.toml:2", "allow": "GRAPHDOCK_PLUGINS"})
    assert decided(admission)[CPU] == ("blocked", "graphdock.toml:2")
    assert decided(admission)[OTHER] == ("blocked", "GRAPHDOCK_PLUGINS does not name it")


@pytest.mark.parametrize("which", ["allow", "block"])
def test_an_unknown_name_is_an_error(which):
    with pytest.raises(ConfigError) as caught:
        Admission(**{which: ("cpuu",)}, origins={"cpuu": "graphdock.toml:4"}).states([CPU, EXTRA, OPTIONAL])
    assert caught.value.message == "graphdock.toml:4: no plugin or distribution named 'cpuu' is installed"
    assert caught.value.expected == "one of cpu, extra, graphdock, graphdock-extra"
    assert caught.value.hint == "did you mean 'cpu'?"


def test_of_two_plugins_of_one_name_neither_loads_or_graphdocks_own():
    mine, rival, one, two = CPU, found("cpu", "rival"), found("x", "one"), found("x", "two")
    assert decided(Admission(), mine, rival, one, two) == {
        mine: ("found", None),
        rival: ("duplicate", "graphdock 1.0 brings a plugin named 'cpu' too; graphdock's own wins"),
        one: ("duplicate", "two 1.0 brings a plugin named 'x' too; neither loads"),
        two: ("duplicate", "one 1.0 brings a plugin named 'x' too; neither loads"),
        OPTIONAL: ("blocked", "graphdock ships it blocked"),
    }
    assert stages(Admission(block=("two",)), one, two) == [("x", "found"), ("x", "blocked")]


def test_without_autoload_only_graphdocks_own_and_the_allowed_load_unnamed():
    def unnamed(admission):
        states = admission.states([CPU, EXTRA, OTHER, OPTIONAL])
        return [s.name for s in states if admission.may_autoload(s)]

    assert unnamed(Admission()) == ["cpu", "extra", "other"]
    assert unnamed(Admission(autoload=False)) == ["cpu"]
    assert unnamed(Admission(allow=("extra",), autoload=False)) == ["cpu", "extra"]
    (state,) = Admission().states([EXTRA])
    assert not Admission().may_autoload(dataclasses.replace(state, busy=True))


PLUGIN = """\
from graphdock.contracts import OpLibrary, hookimpl

@hookimpl
def register_ops(): return [OpLibrary("graphdock_{name}.opdefs")]
"""
#: An op of each library, and the wrapper that opgen would write for it.
OPDEFS = """\
from graphdock.contracts import ArgDef, OpDef

def legs():
    return OpDef(
        "{op}", inputs=(ArgDef("x", "float32", "[*S]"),), outputs=(ArgDef("y", "float32", "[*S]"),), package="graphdock_{name}"
    )

OPS = {{"{op}": legs}}
"""
WRAPPERS = """\
from graphdock import ops as _ops

_apply_op = _ops.apply_op_of(__name__)

def legs(x, name=None):
    return _apply_op("{op}", x=x, name=name)
"""


@pytest.fixture
def library(site, builder):
    def install(name, op, provides="", **files):
        lower = f'\n{MARKER}\n[ops]\nnames = [\n  "{op}",\n]\n{provides}'
        manifest = builder.MANIFEST.format(name=name) + lower
        texts = {"opdefs.py": OPDEFS.format(name=name, op=op), "legs.py": WRAPPERS.format(op=op)}
        site.plugin(name, PLUGIN.format(name=name), manifest=manifest, files=texts)

    return install


@pytest.mark.parametrize("first", ["a", "b"])
def test_of_two_packages_that_declare_one_op_neither_loads(library, first):
    library("a", "shop.Legs")
    library("b", "shop.Legs")
    host = Host()
    with pytest.raises(
        PluginError, match="duplicate: graphdock-. 1.0 brings the op 'shop.Legs' too; neither loads"
    ) as caught:
        host.backend(first)
    other = {"a": "b", "b": "a"}[first]
    assert f'block = ["graphdock-{other}"]' in str(caught.value), "who asks for one is told how to have it"
    with pytest.raises(UnknownOpError, match="(?s)plugin 'a' did not load: duplicate.*plugin 'b' did not load"):
        host.ops.get("shop.Legs")
    assert Host(block=["b"]).ops.get("shop.Legs").package == "graphdock_a"
    assert Host(block=["graphdock-a"]).ops.get("shop.Legs").package == "graphdock_b"


def test_commands_say_so_and_import_nothing(library, process_host):
    library("a", "shop.Legs")
    library("b", "shop.Legs")
    process_host(Host())
    for command, *names in (["plugins"], ["doctor", "a", "b"]):
        result = CliRunner().invoke(cli, [command, *names, "--json"])
        found = json.loads(result.stdout)
        rows = {row["plugin"]: row for row in (found if command == "plugins" else found["plugins"])}
        assert {rows["a"]["stage"], rows["b"]["stage"]} == {"duplicate"}
        assert "op 'shop.Legs'" in rows["a"]["cause"] and rows["a"].get("import_ms") is None


@pytest.mark.parametrize("listed", [(), ("a",)], ids=["neither lists it", "one lists it"])
def test_doctor_compares_what_manifests_do_not_list(library, site, builder, process_host, listed):
    """Each loads well in a process of its own; in one process the second that is loaded does not."""
    for name in "ab":
        library(name, "shop.Legs")
        if name not in listed:
            file = site.folder / f"graphdock_{name}" / "graphdock-plugin.toml"
            file.write_text(builder.MANIFEST.format(name=name))
    process_host(Host())
    result = CliRunner().invoke(cli, ["doctor", "a", "b", "--json", "--strict"])
    rows = {row["plugin"]: row for row in json.loads(result.stdout)["plugins"]}
    for mine, other in ("ab", "ba"):
        assert rows[mine]["stage"] == "duplicate" and rows[mine]["fault"] and result.exit_code == 1
        assert rows[mine]["cause"].startswith(f"graphdock-{other} 1.0 registers the op 'shop.Legs' too: which one")
        assert "graphdock opgen manifest" in rows[mine]["hint"]


def test_graphdocks_own_op_wins_and_no_wrapper_of_another_makes_it(library, process_host):
    library("a", "Abs")
    host = process_host(Host())
    assert host.ops.get("Abs").package == "graphdock_std"
    entry = next(e for e in host.ledger if e.plugin == "a")
    assert entry.stage == "duplicate" and "graphdock's own wins" in entry.cause
    from graphdock_a.legs import legs

    with (
        tf.Graph(host).as_default(),
        pytest.raises(
            AlreadyExistsError, match="graphdock_a has a function for the op 'Abs', but graphdock_std declares that op"
        ),
    ):
        legs(tf.constant([1.0]))


def test_a_wrapper_makes_the_op_of_its_own_package(library, process_host):
    library("a", "shop.Legs")
    host = process_host(Host())
    from graphdock_a.legs import legs

    with tf.Graph(host).as_default():
        assert legs(tf.constant([1.0])).op.op_def.package == "graphdock_a"


@pytest.mark.parametrize(
    ("kind", "noun"),
    [
        ("passes", "pass"),
        ("executors", "executor"),
        ("session_factories", "session factory"),
        ("resource_kinds", "resource kind"),
        ("graph_formats", "graph format"),
        ("checkpoint_formats", "checkpoint format"),
    ],
)
def test_what_is_asked_for_by_name_is_compared_too(library, kind, noun):
    provides = f'\n[provides]\n{kind} = ["same"]\n'
    library("a", "a.Legs", provides)
    library("b", "b.Legs", provides)
    stages = {e.plugin: (e.stage, e.cause) for e in Host().ledger}
    Host().plugins()
    host = Host()
    host.plugins()
    stages = {e.plugin: (e.stage, e.cause) for e in host.ledger}
    assert stages["a"] == ("duplicate", f"graphdock-b 1.0 brings the {noun} 'same' too; neither loads")


def test_device_types_and_their_aliases_are_compared(site, builder):
    site.plugin("one", builder.device_source("one"), manifest=builder.device_manifest("one"))
    other = builder.device_manifest("two").replace("two_alias", "one")
    site.plugin("two", builder.device_source("two"), manifest=other)
    host = Host()
    with pytest.raises(PluginError, match="brings the device type 'one' too; neither loads"):
        host.backend("two")


def test_ten_clashes_are_three_and_a_number(library, site, builder):
    for name in "ab":
        names = "".join(f'  "shop.Op{i}",\n' for i in range(10))
        manifest = builder.MANIFEST.format(name=name) + f"\n{MARKER}\n[ops]\nnames = [\n{names}]\n"
        site.plugin(name, PLUGIN.format(name=name), manifest=manifest)
    host = Host()
    host.plugins()
    (cause,) = {e.cause.replace("-b", "-a") for e in host.ledger if e.plugin in "ab"}
    assert "op 'shop.Op0'; op 'shop.Op1'; op 'shop.Op2'; and 7 more" in cause
    entry = next(e for e in host.ledger if e.plugin == "a")
    assert all(f"op 'shop.Op{i}'" in entry.as_json()["cause"] for i in range(10)), "JSON is whole"
    assert "more" not in entry.as_json()["cause"] and "whole" not in entry.as_json()


def test_an_unknown_kind_in_a_manifest_is_refused_with_its_line(library):
    library("a", "a.Legs", '\n[provides]\nexecutor = ["same"]\n')
    host = Host()
    host.plugins()
    entry = next(e for e in host.ledger if e.plugin == "a")
    assert entry.stage in ("found", "bad manifest")
    library("b", "b.Legs")
    host = Host()
    host.plugins()
    entry = next(e for e in host.ledger if e.plugin == "a")
    assert entry.stage == "bad manifest" and "executor" in entry.cause and "executors" in entry.cause
