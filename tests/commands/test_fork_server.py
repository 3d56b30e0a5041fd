"""One server examines plugin after plugin, each in a process of its own; where none can fork, each in one that is started anew."""

import json
import os

import pytest
from graphdock.plugin.host import Host
from graphdock_commands.fork_server import servers
from graphdock_commands.isolated import examine

TELLS = "import os, sys\nprint('out')\nprint('err', file=sys.stderr)\nPID = os.getpid(), os.getppid(), os.getsid(0)\n"


@pytest.fixture
def start(site, tmp_path):
    """``start(server, source)``: the outcome of a plugin of that source, what its process told, and wrote to standard error."""

    def run(server, source, name):
        site.plugin(name, source)
        file, errors = tmp_path / f"{name}.told", tmp_path / f"{name}.errors"
        errors.touch()
        child = server.start(name, file, errors)
        while not child.ended(60):
            pass
        child.end()
        return child.returncode, [json.loads(line) for line in file.read_text().splitlines()], errors.read_text()

    return run


def test_each_has_a_process_that_leads_a_session_and_the_server_outlives_a_crash(start):
    pids = []
    for name in ("one", "two"):
        site = f"import pathlib\npathlib.Path({name!r} + '.pid').write_text(repr(PID))"
        with servers(1) as (server,):
            assert start(server, "import os\nos._exit(9)", f"{name}crash")[0] == 9
            status, told, errors = start(server, TELLS + site, name)
            killed = start(server, "import os\nos.kill(os.getpid(), 9)", f"{name}killed")
        assert (status, told[-1]["entry"]["stage"], errors, killed[0]) == (0, "registered", "err\n", -9)
        with open(f"{name}.pid") as text:
            pids.append(eval(text.read()))
    for pid, parent, session in pids:
        assert pid == session and len({pid, parent, os.getpid()}) == 3


def test_without_fork_a_process_is_started_for_each(site, monkeypatch):
    monkeypatch.delattr("os.fork")
    site.plugin("well", "VALUE = 1")
    site.plugin("quitter", "import os, sys\nprint('why', file=sys.stderr, flush=True)\nos._exit(5)")
    found = {
        one.entry.plugin: one.entry for one in examine([e for e in Host().ledger if e.plugin in ("well", "quitter")])
    }
    assert found["well"].stage == "registered"
    assert found["quitter"].cause == "the process ended with status 5 while it loaded; it wrote: why"
