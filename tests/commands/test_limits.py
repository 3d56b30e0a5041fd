"""``--timeout``: seconds that the examination of a plugin may take."""

from __future__ import annotations

import click
from graphdock_commands.limits import Limits, timeout_option


def test_the_limit_holds_for_probes_too():
    seen = []
    timeout_option(click.command()(lambda limits: seen.append(limits))).main(["--timeout", "7"], standalone_mode=False)
    timeout_option(click.command()(lambda limits: seen.append(limits))).main([], standalone_mode=False)
    assert seen == [Limits(load=7, probe=7), Limits()]
