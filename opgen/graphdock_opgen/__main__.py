"""``python -m graphdock_opgen``."""

from graphdock_opgen.cli import command

command(prog_name="python -m graphdock_opgen")
