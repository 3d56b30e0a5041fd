"""Files that can't be written: a line that names them, and status 1."""

import pytest
from click.testing import CliRunner
from graphdock.cli import cli


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["opgen", "schema", "--out", "no/such/folder.json"], "'no/such/folder.json': No such file or directory"),
        (["opgen", "schema", "--out", "x" * 500], "File name too long"),
        (["new", "plugin", "lab", "--dir", "file/below"], "Not a directory"),
        (["new", "plugin", "x" * 300], "File name too long"),
    ],
)
def test_what_the_system_refuses_is_a_line(tmp_path, monkeypatch, line, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(cli, line)
    assert done.exit_code == 1 and isinstance(done.exception, SystemExit)
    assert message in done.output and len(done.output) < 400 and done.output.count("\n") == 1
