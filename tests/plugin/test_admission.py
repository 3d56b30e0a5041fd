"""Which of the installed plugins may load, decided over plain records."""

import dataclasses

import pytest
from graphdock.errors import ConfigError
from graphdock.plugin.admission import Admission
from graphdock.plugin.discovery import OWN, Found


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
