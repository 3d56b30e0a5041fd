"""A probe that crashes, exits or hangs is a line of ``devices``, of ``plugins --probe`` and of ``doctor``, which says "probe"."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from graphdock.cli import cli
from graphdock.plugin.host import Host
from graphdock_commands import isolated
from graphdock_commands.isolated import examine
from graphdock_commands.limits import Limits

HANGS = "import time\n        while True: time.sleep(3600)"
CRASHES = (
    "import os, signal, sys\n        print('the bus is gone', file=sys.stderr, flush=True)\n"
    "        os.kill(os.getpid(), signal.SIGSEGV)"
)
EXITS = "import os\n        os._exit(7)"
#: For a probe that never ends: long enough for any machine to get to it. Probes that end have all the time there is.
SHORT = Limits(load=300, probe=0.3)


@pytest.fixture
def chip(site, builder):
    """``chip(probe)`` installs the plugin ``chip`` with that body of its probe."""

    def install(probe, name="chip"):
        site.plugin(name, builder.device_source(name, probe), manifest=builder.device_manifest(name))

    return install


def run(*arguments):
    return CliRunner().invoke(cli, list(arguments))


def examined(limits=None, name="chip"):
    entries = [e for e in Host().ledger if e.plugin == name]
    (found,) = examine(entries, limits)
    return found


@pytest.mark.parametrize(
    ("probe", "cause"),
    [
        (EXITS, "the process ended with status 7 while it probed for 'chip'"),
        (CRASHES, "the process died of SIGSEGV while it probed for 'chip'; it wrote: the bus is gone"),
        (HANGS, "it did not end in 0.3 s while it probed for 'chip'"),
        ("raise OSError('bus')", "OSError: bus"),
    ],
)
def test_a_probe_that_fails_in_any_way_stands_at_probe_failed(chip, probe, cause):
    chip(probe)
    found = examined(SHORT if probe is HANGS else None)
    assert (found.entry.stage, found.entry.cause) == ("probe failed", cause)
    assert found.entry.is_fault
    assert found.devices["chip"]["status"] == "fault"
    assert cause in found.devices["chip"]["cause"]


@pytest.mark.parametrize("command", [["devices"], ["plugins", "--probe"], ["doctor", "chip", "well"]])
@pytest.mark.sampled(6)
def test_every_command_that_probes_survives_and_says_probe(chip, command):
    chip(EXITS)
    chip("return [DeviceInfo('well')]", "well")
    done = run(*command)
    assert done.exit_code == (0 if command[0] == "plugins" else 1), done.output
    assert "the process ended with status 7 while it probed for 'chip'" in done.stdout
    assert "import" not in next(line for line in done.stdout.splitlines() if "status 7" in line)
    assert "well" in done.stdout
    rows = json.loads(run(*command, "--json").stdout)
    assert rows


@pytest.mark.parametrize("command", [["devices"], ["plugins", "--probe"], ["doctor", "slow"]])
@pytest.mark.sampled(6)
def test_the_limit_is_an_option(site, command):
    """Of loading too: whoever gives five seconds waits five for a plugin that hangs at its import, and not two minutes."""
    site.plugin("slow", "import time\nwhile True: time.sleep(3600)")
    done = run(*command, "--timeout", "0.25")
    assert "it did not end in 0.25 s while it loaded" in done.stdout
    assert run(*command, "--timeout", "0").exit_code == 2


def test_the_time_to_load_is_not_the_probes(chip, monkeypatch):
    """Each has a limit of its own, which counts from its own beginning."""
    began, begin = [], isolated._Child._begin

    def noted(self, doing, limit, *more):
        begin(self, doing, limit, *more)
        began.append((limit, self.since))

    monkeypatch.setattr(isolated._Child, "_begin", noted)
    chip("return [DeviceInfo('chip')]")
    assert examined(Limits(load=300, probe=250)).entry.stage in ("registered", "manifest drift")
    assert [limit for limit, _ in began][:2] == [300, 250]
    assert began[1][1] > began[0][1]


def test_a_plugin_that_hangs_while_it_loads_says_so(site):
    site.plugin("slow", "import time\nwhile True: time.sleep(3600)")
    found = examined(Limits(load=0.3), "slow")
    assert (found.entry.stage, found.entry.cause) == ("import failed", "it did not end in 0.3 s while it loaded")


def test_what_a_plugin_has_started_ends_with_it(chip, tmp_path):
    """A grandchild that keeps the standard streams open would hold a command up for as long as it lives."""
    pid = tmp_path / "pid"
    chip(
        "import subprocess, sys, pathlib\n"
        "        p = subprocess.Popen([sys.executable, '-c', 'import time\\nwhile True: time.sleep(3600)'])\n"
        f"        pathlib.Path({str(pid)!r}).write_text(str(p.pid))\n"
        "        return [DeviceInfo('chip')]"
    )
    assert examined(Limits()).devices["chip"]["status"] == "ready"
    assert _gone(int(pid.read_text()))


def _gone(pid):
    """Whether a process is no more; it was killed, and its reaper may need a moment."""
    for _ in range(1000):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        status = Path(f"/proc/{pid}/stat")
        if status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.01)
    return False


def test_a_child_that_has_told_everything_and_does_not_end_is_well(chip, monkeypatch):
    monkeypatch.setattr(isolated, "ENDING", 0.1)
    chip(
        "import threading, time\n        threading.Thread(target=time.sleep, args=(3600,)).start()\n"
        "        return [DeviceInfo('chip')]"
    )
    found = examined(Limits())
    assert found.devices["chip"]["infos"][0]["device"] == "chip:0"
    assert found.entry.stage == "manifest drift" or found.entry.stage == "registered"


@pytest.mark.exhaustive
def test_several_types_of_one_plugin_are_told_apart(site, builder):
    source = builder.device_source("one", "return [DeviceInfo('one')]")
    source += (
        "\nclass Bad(Factory):\n    device_type = 'two'\n"
        f"    def probe(self):\n        {EXITS}\n"
        "\n@hookimpl(specname='register_devices')\ndef register_devices(): return [Factory(), Bad()]\n"
    )
    extra = '\n[[devices]]\ntype = "two"\n'
    site.plugin("one", source, manifest=builder.device_manifest("one") + extra)
    found = examined(name="one")
    assert found.entry.cause == "the process ended with status 7 while it probed for 'two'"
    assert {kind: told["status"] for kind, told in found.devices.items()} == {"one": "ready", "two": "fault"}
    done = run("devices")
    assert "one:0" in done.stdout
    assert done.exit_code == 1


def test_what_takes_long_is_told_on_standard_error(chip, capsys):
    chip(HANGS)
    examined(Limits(load=300, probe=0.5, slow=0.05))
    told = capsys.readouterr().err
    assert "chip is not done after 0.05 s: it probed for 'chip', and may take 0.5 s" in told


def test_on_a_terminal_every_step_is_told(chip, capsys, monkeypatch):
    chip("return [DeviceInfo('chip')]")
    examined(Limits())
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    examined(Limits())
    assert capsys.readouterr().err.splitlines() == ["chip loads", "chip is probed for 'chip'"]


def test_an_interrupt_ends_the_children(chip, monkeypatch, tmp_path):
    pid = tmp_path / "pid"
    chip(f"import os, pathlib\n        pathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\n        {HANGS}")

    class Interrupted(KeyboardInterrupt):
        pass

    listen = isolated._Child._listen

    def interrupted(self, file):
        listen(self, file)
        if pid.exists() and pid.read_text():
            raise Interrupted

    monkeypatch.setattr(isolated._Child, "_listen", interrupted)
    with pytest.raises(Interrupted):
        examined(Limits())
    assert _gone(int(pid.read_text()))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_process_that_is_terminated_leaves_no_child(chip, site, tmp_path, number):
    """As by a supervisor, or where a terminal is closed."""
    pid = tmp_path / "pid"
    chip(f"import os, pathlib\n        pathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\n        {HANGS}")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-m", "graphdock", "doctor", "chip"]
    process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (pid.exists() and pid.read_text()):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    assert process.wait(60) == 128 + number
    assert _gone(int(pid.read_text()))


def test_blocked_and_broken_plugins_are_not_started(site):
    site.plugin("gone", manifest=None)
    found = examined(name="gone")
    assert (found.entry.stage, found.devices) == ("no manifest", {})


def test_a_signal_without_a_name_is_a_number():
    assert isolated._ending(-signal.SIGKILL) == "the process died of SIGKILL"
    assert isolated._ending(-63) == "the process died of signal 63"


def test_what_the_probes_of_kernels_find_is_said_once(site):
    source = """
from graphdock.contracts import KernelDef, hookimpl

@hookimpl
def register_kernels():
    return [KernelDef(op, "cpu", lambda ctx: None, probe=lambda: "libfound 7 of this machine") for op in ("Exp", "Neg")]
"""
    site.plugin("finds", source)
    assert examined(name="finds").found == ("libfound 7 of this machine",)
    assert run("doctor", "finds").stdout.count("libfound 7 of this machine") == 1
    (row,) = json.loads(run("doctor", "finds", "--json").stdout)["plugins"]
    assert row["found"] == ["libfound 7 of this machine"]
