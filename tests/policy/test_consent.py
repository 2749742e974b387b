"""Which crawls may begin."""

from __future__ import annotations

import pytest
from cases import for_each

from harvestman.config import Config, Politeness
from harvestman.errors import UsageError
from harvestman.model import Seconds
from harvestman.policy.consent import refuse_rudeness, stays_home

PUBLIC = ["https://example.org/"]
LOCAL = ["http://127.0.0.1:8000/"]
SIM = ["http://h0001.test:8800/"]
LOOPBACK = ("127.0.0.0/8",)


def paced(delay: float, ip_delay: float = 0.1) -> Politeness:
    return Politeness(delay=Seconds(delay), ip_delay=Seconds(ip_delay))


@for_each(
    ("config", "seeds", "home"),
    [
        (Config(), PUBLIC, False),
        (Config(allow=LOOPBACK), LOCAL, True),
        (Config(allow=LOOPBACK, scope="host"), ["http://localhost/", "http://a.localhost/", "http://[::1]/"], True),
        (Config(allow=LOOPBACK, scope="all"), LOCAL, False),
        (Config(allow=LOOPBACK, scope="patterns"), LOCAL, False),
        (Config(allow=LOOPBACK), LOCAL + PUBLIC, False),
        (Config(allow=LOOPBACK, scope="all", dns="127.0.0.1:8853"), SIM, True),
        (Config(allow=LOOPBACK, scope="all", dns="localhost:8853"), SIM, True),
        (Config(allow=LOOPBACK, scope="all", dns=("127.0.0.1:8853", "127.0.0.2:53")), SIM, True),
        (Config(allow=LOOPBACK, scope="all", dns=("127.0.0.1:8853", "8.8.8.8:53")), SIM, False),
        (Config(allow=LOOPBACK, scope="all", dns="https://8.8.8.8/dns-query"), SIM, False),
        (Config(allow=("0.0.0.0/0",), scope="all", dns="127.0.0.1:8853"), SIM, True),
        (Config(allow=("127.0.0.1/32",), scope="all", dns="127.0.0.1:8853"), SIM, False),
        (Config(allow=LOOPBACK, scope="all", dns="8.8.8.8:53"), SIM, False),
        (Config(allow=LOOPBACK, scope="all"), SIM, False),
        (Config(scope="all", dns="127.0.0.1:8853"), SIM, False),
        # A resolver on loopback is common (127.0.0.53): it must not open the Internet.
        (Config(allow=LOOPBACK, scope="all", dns="127.0.0.53:53"), PUBLIC, False),
        (Config(allow=LOOPBACK, scope="all", dns="127.0.0.53"), ["http://localhost/"], False),
        (Config(allow=LOOPBACK, scope="all", dns="127.0.0.53"), LOCAL, False),
        (Config(allow=LOOPBACK, scope="all", dns="127.0.0.1:8853"), SIM + LOCAL, False),
        (Config(allow=LOOPBACK, scope="site", dns="127.0.0.1:8853"), SIM + LOCAL, True),
        (Config(allow=LOOPBACK, scope="site", dns="127.0.0.1:8853"), SIM + PUBLIC, False),
        (Config(allow=LOOPBACK), ["http://10.0.0.1/"], False),
    ],
)
def test_what_stays_on_this_machine(config: Config, seeds: list[str], home: bool) -> None:
    assert stays_home(config, seeds) is home


def test_a_public_crawl_needs_a_contact() -> None:
    with pytest.raises(UsageError, match="--contact") as refusal:
        refuse_rudeness(Config(), PUBLIC)
    assert "--sim" in str(refusal.value)


@pytest.mark.parametrize(
    "contact", ["https://example.org/crawler", "http://example.org", "me@example.org", "mailto:me@example.org"]
)
def test_contacts(contact: str) -> None:
    config = Config(contact=contact)
    refuse_rudeness(config, PUBLIC)
    assert contact in config.user_agent("1")


@for_each(
    "contact",
    ["me", "example.org", "https://", "http://localhost", "ftp://example.org/", "a@b", "a b@example.org",
     "https://example.org/\r\nX: y", "https://exämple.org/", "me@example.org\n"],
)  # fmt: skip
def test_what_is_no_contact(contact: str) -> None:
    with pytest.raises(UsageError, match="neither a URL"):
        refuse_rudeness(Config(contact=contact), PUBLIC)


@pytest.mark.parametrize("politeness", [paced(0.0), paced(0.05), paced(1.0, 0.0)])
def test_too_fast_for_strangers(politeness: Politeness) -> None:
    config = Config(contact="me@example.org", politeness=politeness)
    with pytest.raises(UsageError, match="too fast"):
        refuse_rudeness(config, PUBLIC)


def test_fast_at_home_is_fine() -> None:
    config = Config(allow=LOOPBACK, politeness=paced(0.0, 0.0))
    refuse_rudeness(config, LOCAL)
    assert stays_home(config, LOCAL)


@pytest.mark.parametrize(
    ("seed", "cure"),
    [
        ("http://127.0.0.1:8000/", "--allow 127.0.0.0/8"),
        ("http://localhost/", "--allow 127.0.0.0/8"),
        ("http://192.168.1.5/", "--allow 192.168.1.5/32"),
        ("http://[::1]:8000/", "--allow ::1/128"),
        ("http://[fe80::1]/", "--allow fe80::1/128"),
    ],
)
def test_a_private_seed_names_the_cure(seed: str, cure: str) -> None:
    with pytest.raises(UsageError, match="--allow") as refusal:
        refuse_rudeness(Config(contact="me@example.org"), [seed])
    assert cure in str(refusal.value)
    refuse_rudeness(Config(contact="me@example.org", allow=(cure.removeprefix("--allow "),)), [seed])


def test_a_seed_on_a_closed_port_is_refused_with_the_cure() -> None:
    config = Config(contact="you@example.org")
    with pytest.raises(UsageError, match=r"seed https://example\.org:3000/: port 3000 .* --allow-port 3000 opens it"):
        refuse_rudeness(config, ["https://example.org:3000/"])
    refuse_rudeness(Config(contact="you@example.org", ports=(3000,)), ["https://example.org:3000/"])
    refuse_rudeness(config, ["https://example.org:8080/"])
