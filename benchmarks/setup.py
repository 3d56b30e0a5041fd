"""Make the peers' environments: `python -m benchmarks.setup [tensorflow] [torch] [jax] [onnxruntime]`.

Each is a virtual environment under `.bench/`. `installed.txt`, the exact versions, is written last: an environment
without it was interrupted, and is made again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.environments import PEERS, environment_of, interpreter_of

__all__ = ["install", "main"]


def install(framework: str, root: Path | None = None) -> Path:
    """Make the environment of one peer and install it; returns the environment's folder.

    Raises subprocess.CalledProcessError where pip fails; the environment then counts as missing.
    """
    environment = environment_of(framework, root)
    venv.EnvBuilder(with_pip=True, clear=environment.exists()).create(environment)
    python = environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", *PEERS[framework]], check=True)
    frozen = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True).stdout
    (environment / "installed.txt").write_text(frozen, encoding="utf-8")
    return environment


def main(arguments: list[str] | None = None) -> int:
    """Install the named peers, or all; those that are there are left as they are unless --again is given."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.setup", description=__doc__)
    parser.add_argument("frameworks", nargs="*", metavar="FRAMEWORK", help=f"any of {', '.join(PEERS)}; default all")
    parser.add_argument("--again", action="store_true", help="make environments anew that exist")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.frameworks if name not in PEERS]
    if unknown:
        parser.error(f"no such peer: {', '.join(unknown)}; there are {', '.join(PEERS)}")
    failed = []
    for framework in options.frameworks or PEERS:
        if interpreter_of(framework) is not None and not options.again:
            print(f"{framework}: installed already")
            continue
        print(f"{framework}: installing {' '.join(PEERS[framework])} ...", flush=True)
        try:
            install(framework)
        except subprocess.CalledProcessError as error:
            failed.append(framework)
            print(f"{framework}: failed (exit {error.returncode}); benchmarks will list it as missing", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
