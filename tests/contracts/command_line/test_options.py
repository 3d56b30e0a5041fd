"""``--config`` and ``--profile``, and what the commands say of a target or a name that they can't take."""

import os

import pytest
from click.testing import CliRunner
from graphdock.cli import cli

PROGRAM = """\
import graphdock as tf


def build():
    return tf.constant(1.0) + 1.0


def helper(x, y=1):
    return x
"""
FILE = '[session]\nfallback = "forbid"\n\n[profile.quiet.session]\nfallback = "allow"\n'


@pytest.fixture
def work(tmp_path, monkeypatch):
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "other.toml").write_text(FILE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli, list(arguments))


def setting(*arguments):
    done = run("config", *arguments)
    assert done.exit_code == 0, done.output
    (row,) = [line.split() for line in done.stdout.splitlines() if line.startswith("fallback ")]
    return row[1:]


def test_what_is_typed_goes_over_the_file_that_is_named(work):
    assert setting("--config", "other.toml") == ["forbid", "other.toml:2"]
    assert setting("--config", "other.toml", "--profile", "quiet") == ["allow", "other.toml:5"]
    assert setting("--config", "other.toml", "--fallback", "warn") == ["warn", "--fallback"]
    done = run("explain", "program.py:build", "--config", "other.toml", "--fallback", "warn")
    assert "fallback=warn" in done.stdout
    assert not {"GRAPHDOCK_CONFIG", "GRAPHDOCK_PROFILE"} & set(os.environ)


@pytest.mark.parametrize("wrong", [["--nope"], ["--config"], ["extra"], ["--profile"]])
def test_a_call_that_is_wrong_sets_no_variable(work, wrong):
    assert run("config", "--config", "other.toml", "--profile", "quiet", *wrong).exit_code == 2
    assert not {"GRAPHDOCK_CONFIG", "GRAPHDOCK_PROFILE"} & set(os.environ)


def test_variables_that_were_set_come_back(work, monkeypatch):
    monkeypatch.setenv("GRAPHDOCK_CONFIG", "nowhere.toml")
    assert setting("--config", "other.toml") == ["forbid", "other.toml:2"]
    assert os.environ["GRAPHDOCK_CONFIG"] == "nowhere.toml"


def test_a_profile_needs_a_file_that_has_it(work):
    done = run("explain", "program.py:build", "--profile", "quiet")
    assert done.exit_code == 2
    assert "there is no configuration file to take the profile 'quiet' from" in done.stderr
    done = run("explain", "program.py:build", "--config", "other.toml", "--profile", "quite")
    assert done.exit_code == 2 and "'quiet'" in done.stderr


def test_explain_names_the_arguments_that_nobody_passes(work):
    done = run("explain", "program.py:helper")
    assert "program.py:helper is called without arguments, but it needs x" in done.stderr


@pytest.mark.parametrize("name", ["cpu", "native", "core"])
def test_a_new_plugin_cannot_take_a_name_of_graphdocks_own(work, name):
    done = run("new", "plugin", name)
    assert done.exit_code == 1
    assert f"graphdock has a {name!r} of its own" in done.stderr
    assert not (work / f"graphdock-{name}").exists()


@pytest.mark.parametrize("group", ["new", "opgen"])
def test_a_group_lists_its_commands_in_whole_sentences(group):
    done = run(group, "--help")
    assert "..." not in done.stdout.partition("Commands:")[2]
