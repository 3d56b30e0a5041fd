"""Write what ``graphdock plugins`` prints into the README's block of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"(\$ graphdock plugins\n).*?(\n```)", re.S)


def main() -> None:
    table = subprocess.run(
        [sys.executable, "-m", "graphdock", "plugins"], capture_output=True, text=True, check=True
    ).stdout.rstrip()
    text = README.read_text()
    new = BLOCK.sub(lambda found: found[1] + table + found[2], text)
    if new != text:
        README.write_text(new)


if __name__ == "__main__":
    main()
