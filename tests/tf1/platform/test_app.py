"""``tf.app.run`` of whole scripts: arguments, exit status, help."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = '''
"""Trains."""
import sys
import graphdock as tf
flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_integer("steps", 3, "How many.")

def main(unused_argv):
    print(FLAGS.steps, unused_argv[1:])
    return FLAGS.steps - 3

if __name__ == "__main__":
    tf.app.run()
'''


@pytest.mark.parametrize(
    ("words", "status", "out", "err"),
    [
        ([], 0, "3 []\n", ""),
        (["--steps", "5", "--what", "x"], 2, "5 ['--what', 'x']\n", ""),
        (["--help"], 1, "Trains.\n\nflags:\n  --steps: How many.\n    (default: 3)\n", ""),
        (["--steps=a"], 1, "", "FATAL Flags parsing error:\n  flag --steps=a: "),
    ],
)
def test_a_script_runs(tmp_path, words, status, out, err) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, tmp_path / "script.py", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, out) and done.stderr.startswith(err)


def test_a_script_without_main_is_told(monkeypatch) -> None:
    import graphdock as tf

    monkeypatch.setitem(sys.modules, "__main__", sys)
    with pytest.raises(tf.errors.InvalidArgumentError, match="the script has no function main"):
        tf.app.run(argv=["prog"])
