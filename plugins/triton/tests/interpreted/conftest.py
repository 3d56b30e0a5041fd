"""Tests of kernels in Triton's interpreter. Whether a process interprets is settled when it first imports triton, so these run
in one of their own, which tests/test_interpreted.py starts."""

from __future__ import annotations

import os

import pytest

if os.environ.get("TRITON_INTERPRET") != "1":
    collect_ignore_glob = ["*"]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
