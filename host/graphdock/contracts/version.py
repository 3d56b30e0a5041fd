"""The version of the contracts in this package, and the range syntax of a manifest's ``api`` field."""

from __future__ import annotations

import re

from graphdock.errors import ManifestError

__all__ = ["API_RANGE", "API_VERSION", "api_accepts"]

#: (major, minor). Stays 0.x until two foreign devices pass conformance; every change is an ADR and a bump.
API_VERSION = (0, 3)
#: What a package written for these contracts puts into its manifest.
API_RANGE = f">={API_VERSION[0]}.{API_VERSION[1]},<{API_VERSION[0]}.{API_VERSION[1] + 1}"

_TERM = re.compile(r"\s*(>=|<)\s*(\d{1,9})(?:\.(\d{1,9}))?\s*")


def api_accepts(text: str, version: tuple[int, int] = API_VERSION) -> bool:
    """Whether a range such as ``">=0.3,<0.4"`` holds for ``version``. Only ``>=`` and ``<`` are allowed.

    Raises:
      ManifestError: the text is not such a range.
    """
    holds = True
    for term in text.split(","):
        match = _TERM.fullmatch(term)
        if match is None:
            raise ManifestError(
                f"api = {text!r} is not a range",
                expected="terms with >= and <, separated by commas",
                hint=f'written for this version: api = "{API_RANGE}"',
            )
        bound = (int(match[2]), int(match[3] or 0))
        holds = holds and (version >= bound if match[1] == ">=" else version < bound)
    return holds
