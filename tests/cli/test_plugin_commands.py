"""Commands that plugins bring: ``[command]`` of their manifests."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner
from graphdock.cli import cli

COMMAND = """
import click

@click.command()
@click.argument("what")
def command(what):
    click.echo(f"chip does {what}")
"""
MANIFEST = """schema = 1
[plugin]
name = "{name}"
summary = "A chip"
api = ">=0.3,<0.4"
{more}
[command]
module = "graphdock_{name}.tool"
summary = "Do something with the chip."
"""


def run(*arguments):
    return CliRunner().invoke(cli, list(arguments))


@pytest.fixture
def chip(site):
    def add(name="chip", command=COMMAND, more=""):
        site.plugin(name, "", manifest=MANIFEST.format(name=name, more=more))
        (site.folder / f"graphdock_{name}" / "tool.py").write_text(command)

    return add


def test_a_plugins_command_has_its_name_and_is_imported_when_it_is_called(chip):
    chip()
    shown = run("--help").stdout
    assert "Commands of plugins" in shown and "Do something with the chip." in shown
    assert "graphdock_chip" not in sys.modules
    done = run("chip", "work")
    assert (done.exit_code, done.stdout) == (0, "chip does work\n")
    assert "chip" in run("chp", "work").stderr


def test_a_plugin_that_may_not_load_has_no_command_either(chip, monkeypatch):
    chip()
    monkeypatch.setenv("GRAPHDOCK_BLOCK", "chip")
    done = run("chip", "work")
    assert done.exit_code == 1 and "plugin 'chip' (graphdock-chip" in done.stderr and "blocked" in done.stderr
    assert "graphdock_chip" not in sys.modules


def test_what_is_missing_is_said_before_anything_is_imported(chip):
    chip(more='imports = ["chip_driver"]\ninstall = "pip install chip-driver"')
    assert "can't be used: missing module: missing chip_driver" in run("--help").stdout
    done = run("chip", "work")
    assert done.exit_code == 1 and "pip install chip-driver" in done.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("import nothing_of_that_name", "its command can't be imported: ModuleNotFoundError"),
        ("", "its command can't be imported: AttributeError"),
        ("command = 3", "graphdock_chip.tool.command is no command"),
    ],
)
def test_a_fault_of_a_plugins_command_is_named(chip, command, said):
    chip(command=command)
    done = run("chip", "work")
    assert done.exit_code == 1 and said in done.stderr


def test_graphdocks_own_commands_go_before_those_of_plugins(chip):
    chip("ops")
    assert "Relu" in run("ops").stdout


def several(site, name, *commands):
    rows = [f'[[command]]\nname = "{c}"\nmodule = "graphdock_{name}.{c}"\nsummary = "{c} it."\n' for c in commands]
    site.plugin(name, "", manifest=MANIFEST.partition("[command]")[0].format(name=name, more="") + "\n".join(rows))
    for c in commands:
        (site.folder / f"graphdock_{name}" / f"{c}.py").write_text(COMMAND.replace("chip does", f"{name}'s {c} does"))


def test_a_plugin_may_bring_several_commands_each_a_module_of_its_own(site):
    several(site, "chip", "burn", "cool")
    shown = run("--help").stdout
    assert "burn it." in shown and "cool it." in shown
    assert run("cool", "work").stdout == "chip's cool does work\n"
    assert "graphdock_chip.burn" not in sys.modules
    done = run("chip", "work")
    assert done.exit_code == 2 and "no command 'chip'" in done.stderr


def test_a_command_that_two_plugins_bring_is_neithers_until_one_is_blocked(site, monkeypatch):
    several(site, "chip", "burn")
    several(site, "stove", "burn", "cook")
    done = run("burn", "work")
    assert done.exit_code == 1 and "'chip' (graphdock-chip" in done.stderr and "'stove' (graphdock-stove" in done.stderr
    assert 'block = ["stove"]' in done.stderr and "several plugins bring it: chip, stove" in run("--help").stdout
    assert run("cook", "work").stdout == "stove's cook does work\n"
    monkeypatch.setenv("GRAPHDOCK_BLOCK", "stove")
    assert run("burn", "work").stdout == "chip's burn does work\n"


def test_help_is_printed_although_the_configuration_is_wrong(chip, monkeypatch, tmp_path):
    chip()
    (tmp_path / "graphdock.toml").write_text("[plugins]\nblok = 1\n")
    monkeypatch.setenv("GRAPHDOCK_CONFIG", str(tmp_path / "graphdock.toml"))
    done = run("--help")
    assert done.exit_code == 0 and "explain" in done.stdout and "not known: " in done.stdout


def test_a_command_may_run_a_programs_step(chip, tmp_path):
    (tmp_path / "program.py").write_text(
        "import graphdock as tf\nx = tf.placeholder(tf.float32, [2], name='x')\ny = x * tf.Variable([1.0, 2.0])\n"
        "fed = y, {x: [3.0, 4.0]}\n"
    )
    chip(
        command="import click\n\n@click.command()\n@click.argument('what')\n@click.pass_obj\ndef command(tools, what):\n"
        "    session, step = tools.session(what, backends=['cpu'])\n    with session:\n"
        "        print(session.run(step.fetches, step.feeds))\n"
    )
    assert run("chip", f"{tmp_path / 'program.py'}:fed").stdout == "[3. 8.]\n"
    failed = run("chip", f"{tmp_path / 'program.py'}:y")
    assert (
        failed.exit_code == 1
        and "placeholder 'x' is needed" in failed.stderr
        and "(fetches, feed_dict)" in failed.stderr
    )


def test_a_command_may_plan_a_program_and_the_initial_values_of_its_variables(chip, tmp_path):
    (tmp_path / "program.py").write_text(
        "import graphdock as tf\nx = tf.placeholder(tf.float32, [2])\ny = tf.exp(x) * tf.Variable([1.0, 2.0])\n"
        "nothing = tf.exp(x)\n"
    )
    chip(
        command="import click\n\n@click.command()\n@click.argument('what')\n@click.pass_obj\ndef command(tools, what):\n"
        "    plans = [tools.explain(what, backends=['cpu']) for _ in range(2)][1]\n"
        "    print(tools.table(('PLAN', 'NODES'), [(i, len(p.rows)) for i, p in enumerate(plans)], right=('NODES',)))\n"
        "    print(plans[0].kernels())\n"
    )
    done = run("chip", f"{tmp_path / 'program.py'}:y")
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["PLAN", "NODES"] and [line[0] for line in lines[1:3]] == ["0", "1"]
    assert "cpu.exp" in done.stdout
    failed = run("chip", f"{tmp_path / 'program.py'}:z")
    assert failed.exit_code == 2 and "has no 'z'" in failed.stderr
