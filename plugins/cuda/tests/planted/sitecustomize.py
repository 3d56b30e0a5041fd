"""A process with this folder and ``tests/laws`` on its path has the fault that ``PLANTED`` tells, and so have its children."""

import planted_source  # noqa: F401
