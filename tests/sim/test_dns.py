"""The name server, asked through dnspython."""

from __future__ import annotations

import dns.message
import dns.rcode
import dns.rdatatype

from harvestman.sim.dns import Names
from harvestman.sim.hosts import Feature
from harvestman.sim.plan import Plan
from harvestman.sim.web import Web

WEB = Web(Plan(hosts=60))


def ask(name: str, kind: str = "A", *, spread: bool = True) -> dns.message.Message:
    query = dns.message.make_query(name, kind, use_edns=True)
    reply = Names(WEB, spread).answer(query.to_wire())
    assert reply is not None
    answer = dns.message.from_wire(reply)
    assert query.is_response(answer)
    return answer


def addresses(answer: dns.message.Message) -> list[str]:
    return [str(record) for section in answer.answer for record in section]


def test_every_host_has_its_address() -> None:
    for host in WEB.hosts:
        if host.resolves:
            assert addresses(ask(host.name)) == [host.address]


def test_case_does_not_matter() -> None:
    assert addresses(ask("H0001.TEST")) == [WEB.hosts[0].address]


def test_no_ipv6() -> None:
    answer = ask("h0001.test", "AAAA")
    assert (answer.rcode(), answer.answer) == (dns.rcode.NOERROR, [])


def test_names_that_do_not_resolve() -> None:
    by_feature = {host.feature: host.name for host in WEB.hosts}
    assert ask("nobody.test").rcode() == dns.rcode.NXDOMAIN
    assert ask(by_feature[Feature.NXDOMAIN]).rcode() == dns.rcode.NXDOMAIN
    assert ask(by_feature[Feature.SERVFAIL]).rcode() == dns.rcode.SERVFAIL


def test_one_address_where_there_is_only_one() -> None:
    assert addresses(ask("h0002.test", spread=False)) == ["127.0.0.1"]


def test_rubbish_is_not_answered_or_refused() -> None:
    names = Names(WEB)
    assert names.answer(b"\0" * 5) is None
    broken = names.answer(b"\x12\x34\x01\0\0\1\0\0\0\0\0\0" + b"\x3f" * 9)
    assert broken is not None
    assert dns.message.from_wire(broken).rcode() == dns.rcode.FORMERR
