"""A host with a compiler of loops, in a plugin that sessions list before cpu."""

from __future__ import annotations

import types

import graphdock as tf
import pytest
from graphdock.contracts import hookimpl
from graphdock.plugin.host import Host
from graphdock_testing.region_reference import ReferenceCompiler


class Lab:
    """A host with a compiler, in a plugin that sessions list before cpu."""

    def __init__(self, compiler, process_host):
        self.compiler = compiler
        self.host = process_host(Host())
        hook = hookimpl(specname="register_region_compilers")(lambda: [compiler])
        self.host.register("lab", types.SimpleNamespace(register_region_compilers=hook, __name__="lab"))

    def session(self):
        return tf.Session(config=tf.SessionConfig(backends=["lab", "cpu"]), host=self.host)


@pytest.fixture
def loops(process_host):
    def make(compiler=None):
        return Lab(compiler or ReferenceCompiler(), process_host)

    with tf.Graph().as_default():
        yield make
