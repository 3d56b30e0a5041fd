"""Results of a plugin's objects: a device without staging, a queue without record, a program without run, and None."""

from __future__ import annotations

import types

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Device, Executor, KernelDef, Prepared, Program, Queue, QueuedDevice, hookimpl
from graphdock.contracts.device import returned
from graphdock.contracts.queue import queue_of
from graphdock.contracts.returned import unfinished
from graphdock.errors import PluginError
from graphdock.plugin.host import Host
from graphdock_commands.checks import check_parts

ENGINES = """\
from graphdock.contracts import Executor, Program, hookimpl

class Steps(Program):
    pass

class Lost(Executor):
    name = "lost"
    def compile(self, placed): pass

class Half(Executor):
    name = "half"
    def compile(self, placed): return Steps()

@hookimpl
def register_executors(): return [Lost(), Half()]
"""

DASH = """\
import numpy as np
from graphdock.contracts import DeviceFactory, DeviceInfo, KernelDef, Queue, QueuedDevice, hookimpl

class DashQueue(Queue):
    def __init__(self): pass
    def copy(self, src, dst): np.copyto(dst, src)
    def from_host(self, array, dst): np.copyto(dst, array)
    def to_host(self, src, dst): np.copyto(dst, src)
    def allocate(self, nbytes): return np.empty(nbytes, np.uint8)
    def free(self, storage): pass
    def event(self): return object()
    def wait(self, event): pass
    def synchronize(self): pass
    def set_arguments(self, data): pass

class DashDevice(QueuedDevice):
    def new_queue(self): return DashQueue()
    def activate(self, queue=None): return None
    def restore(self, previous): pass
    def passed(self, event): return True
    def wait_host(self, event): pass
    def synchronize(self): pass
    def allocate(self, nbytes, align=64): return np.empty(nbytes, np.uint8)
    def view(self, storage, offset, dtype, shape): return np.ndarray(shape, dtype.np, storage, offset)
    # staging

class Factory(DeviceFactory):
    device_type = "dash"
    def probe(self): return [DeviceInfo("dash", 0)]
    def open(self, info, options): return DashDevice(info)

@hookimpl
def register_devices(): return [Factory()]

@hookimpl
def register_kernels(): return [KernelDef("Identity", "dash", lambda ctx: np.copyto)]
"""
STAGING = "def staging(self, nbytes): return np.empty(nbytes, np.uint8)"


@pytest.fixture
def dash(site, builder):
    """Function of the plugin's source to a host that has it."""

    def made(source):
        site.plugin("dash", source, manifest=builder.device_manifest("dash"))
        return Host()

    return made


def test_a_device_that_lacks_a_method_is_refused_as_it_is_opened(dash):
    host = dash(DASH)
    with pytest.raises(
        PluginError, match="plugin 'dash': Factory.open makes a DashDevice, which lacks staging"
    ) as caught:
        host.open_device("dash:0")
    assert caught.value.hint.startswith("`def staging(self, nbytes: ")
    assert "Host memory that the device reads and writes" in caught.value.hint


@pytest.mark.plain  # debug mode runs steps without queues
def test_a_queue_that_lacks_a_method_is_refused_where_a_session_makes_it(dash, process_host):
    host = process_host(dash(DASH.replace("# staging", STAGING)))
    with pytest.raises(PluginError, match="plugin 'dash': DashDevice.new_queue makes a DashQueue, which lacks record"):
        queue_of(host.open_device("dash:0"))
    with tf.Session(config=tf.SessionConfig(backends=["dash", "cpu"]), host=host) as session:
        x = tf.placeholder(tf.float32, [2])
        with pytest.raises(tf.errors.OpError, match="plugin 'dash': DashDevice.new_queue .* lacks record"):
            session.run(tf.identity(x), {x: [1.0, 2.0]})


@pytest.mark.parametrize(
    ("executor", "what"),
    [
        ("lost", r"plugin 'engines': Lost.compile returned None"),
        ("half", r"plugin 'engines': Half.compile makes a Steps, which lacks run"),
    ],
)
def test_an_executor_that_makes_no_program_is_named(site, process_host, executor, what):
    site.plugin("engines", ENGINES)
    process_host(Host())
    with tf.Session(config=tf.SessionConfig(executor=executor)) as session, pytest.raises(PluginError, match=what):
        session.run(tf.constant(1.0) + 1.0)


def test_what_is_of_another_class_is_told_with_what_it_lacks():
    class Looks:
        def run(self, step, feeds): ...

    with pytest.raises(PluginError, match=r"plugin 'p': E.compile returned <.*Looks object at [^,\n]*\n") as caught:
        returned(Looks, Program, "p", "E.compile")
    assert (caught.value.expected, caught.value.got) == ("a graphdock.contracts.Program", "Looks")
    with pytest.raises(PluginError, match="returned 7, which lacks compile") as caught:
        returned(lambda: 7, Executor, "p", "open")
    with pytest.raises(TypeError, match="not the classes"):
        returned(lambda: (_ for _ in ()).throw(TypeError("not the classes")), Program, "p", "m")


def test_a_kernel_whose_prepare_returns_nothing_is_named():
    host = Host()

    class Plugin:
        from graphdock.contracts import hookimpl

        @hookimpl
        def register_kernels(self):
            return [KernelDef("Exp", "cpu", prepare=lambda ctx: None, name="empty", priority=99)]

    host.register("lab", Plugin())
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [2])
        session = tf.Session(config=tf.SessionConfig(backends=["lab", "cpu"]), host=host)
        with session, pytest.raises(PluginError, match="plugin 'lab': prepare of the kernel lab.empty returned None"):
            session.run(tf.exp(x), {x: np.ones(2)})


def test_classes_that_lack_methods_are_found_without_running(dash):
    host = dash(DASH)
    host.backend("dash")
    state = host.state("dash")
    check_parts(host, state)
    assert state.stage == "inconsistent"
    found = list(unfinished("graphdock_dash", [Device, Queue]))
    assert [line.partition(":")[0] for line in sorted(found)] == [
        "graphdock_dash.plugin.DashDevice lacks staging",
        "graphdock_dash.plugin.DashQueue lacks record",
    ]


def test_a_class_from_which_others_derive_is_no_fault():
    class Base(QueuedDevice):
        pass

    class Whole(Base):
        pass

    Whole.__abstractmethods__ = frozenset()
    assert not [line for line in unfinished(__name__.partition(".")[0], [QueuedDevice]) if ".Base" in line]


@pytest.mark.parametrize("made", [None, 3, [np.add]], ids=repr)
@pytest.mark.parametrize("way", ["build", "bind"])
@pytest.mark.parametrize("executor", ["straight_line", "dataflow"])
def test_what_a_kernel_is_built_or_bound_to_is_a_function(executor, way, made):
    host = Host()
    told = {"prepare": lambda ctx: Prepared(bind=lambda told: made)} if way == "bind" else {"build": lambda ctx: made}
    kernel = KernelDef("Tanh", device="cpu", name="none", priority=1000, **told)
    hook = hookimpl(specname="register_kernels")(lambda: [kernel])
    host.register("fault", types.SimpleNamespace(__name__="fault", register_kernels=hook))
    with tf.Graph(host).as_default():
        y = tf.tanh(tf.placeholder_with_default([1.0], [1]), name="y")
    config = tf.SessionConfig(backends=("fault", "cpu"), executor=executor)
    with (
        tf.Session(graph=y.graph, config=config, host=host) as session,
        pytest.raises(tf.errors.InternalError, match="kernel fault.none of Tanh could not be .*returned") as caught,
    ):
        session.run(y)
    assert "is to return a function" in str(caught.value) and caught.value.op is y.op
