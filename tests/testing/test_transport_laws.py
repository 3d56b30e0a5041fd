"""The laws of transports: the seeded transport and ZeroMQ hold them; those that break one are told which."""

from __future__ import annotations

import pytest
from graphdock.contracts import Transport, hookimpl
from graphdock.plugin.host import Host
from graphdock_testing.case import ConformanceError, Untested
from graphdock_testing.conformance import Conformance
from graphdock_testing.transport import SeededTransport
from graphdock_testing.transport_laws import TRANSPORT_LAWS, check_transport

#: Laws that start a process, which has installed plugins alone.
OF_PROCESSES = ("calls of a killed process end", "sessions of a killed process are told of")


def hosts_of(network):
    """What makes hosts with an end of a network."""

    def make():
        host = Host(block=["ray"])
        host.register("network", network.plugin(f"end-{len(made)}"))
        made.append(host)
        return host

    made: list[Host] = []
    return make


@pytest.mark.parametrize("law", [law for law in TRANSPORT_LAWS if law not in OF_PROCESSES])
def test_the_seeded_transport_is_right(law):
    network = SeededTransport(seed=5)
    check_transport("grpc", law, make=hosts_of(network))
    network.close()


@pytest.mark.parametrize(
    "law",
    [pytest.param(law, marks=pytest.mark.slow if law in OF_PROCESSES else ()) for law in TRANSPORT_LAWS],
)
@pytest.mark.sampled(2)
def test_zeromq_is_right(law):
    pytest.importorskip("zmq")
    check_transport("grpc", law)


class Broken(SeededTransport):
    """A network with a fault."""

    fault = ""

    def post_from(self, caller, address, method, arguments):
        super().post_from(caller, address, method, arguments)
        if self.fault == "twice":
            super().post_from(caller, address, method, arguments)

    def serve(self, address, answer, gone):
        if self.fault == "takes":
            self._served.pop(address, None)
        return super().serve(address, answer, gone)

    def forget(self, address):
        if self.fault != "remembers":
            super().forget(address)


@pytest.mark.parametrize(
    ("fault", "law", "said"),
    [
        ("twice", "each post arrives once", "of 100 posts"),
        ("takes", "an address is served once", "served twice"),
        ("remembers", "who is served no more is not reached", "it was answered"),
    ],
)
def test_a_fault_is_told(fault, law, said):
    network = Broken(seed=1)
    network.fault = fault
    with pytest.raises(ConformanceError, match=said):
        check_transport("grpc", law, make=hosts_of(network))
    network.close()


def test_a_transport_without_sample_addresses_is_untested():
    class Mute(Transport):
        scheme = "mute"

        def call(self, address, method, arguments):
            raise AssertionError

        def post(self, address, method, arguments):
            raise AssertionError

    def make():
        import types

        host = Host()
        host.register("mute", types.SimpleNamespace(register_transports=hookimpl(lambda: [Mute()]), __name__="mute"))
        return host

    with pytest.raises(Untested, match="no sample_address"):
        check_transport("mute", "each post arrives once", make=make)


def test_the_kit_of_a_package_holds_its_transports_to_them():
    pytest.importorskip("zmq")
    cases = [case.id for case in Conformance("ray").cases("transport grpc")]
    assert cases == [f"transport grpc[{law}]" for law in TRANSPORT_LAWS]
