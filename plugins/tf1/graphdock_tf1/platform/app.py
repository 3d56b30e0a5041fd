"""``tf.app.run``: a script's beginning."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from graphdock.errors import InvalidArgumentError

from graphdock_tf1.platform.flags import FLAGS


def run(main: Callable[[list[str]], Any] | None = None, argv: Sequence[str] | None = None) -> NoReturn:
    """Read the command line into ``tf.flags.FLAGS``, call ``main`` with what is left of it, and end the process with what that
    returns: None is success.

    Args:
      main: takes the words that are no defined option, the program's name first; ``main`` of the script when None.
      argv: the command line; ``sys.argv`` when None.

    ``--help`` prints the options. A command line that does not fit is said on stderr, with exit status 1.
    """
    script = sys.modules["__main__"]
    called = main or getattr(script, "main", None)
    if called is None:
        raise InvalidArgumentError("tf.app.run: the script has no function main", hint="tf.app.run(main=function)")
    words = list(sys.argv if argv is None else argv)
    about = f"{(script.__doc__ or '').strip()}\n\nflags:\n{FLAGS.get_help()}\n"
    if any(word in ("--help", "-h", "-help") for word in words[1:]):
        sys.stdout.write(about)
        sys.exit(1)  # as TensorFlow's
    try:
        left = FLAGS(words)
    except InvalidArgumentError as error:
        sys.stderr.write(f"FATAL Flags parsing error:\n  {error.message}\nPass --help to see the flags.\n")
        sys.exit(1)
    sys.exit(called(left))
