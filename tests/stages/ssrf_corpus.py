"""URLs by which a page could try to lead a crawler into a network that it must not touch, each with what stops it.

`{web}` is the port of the one server that the crawl may ask (it stands for the public web), `{n}` a number that makes
the URL one of its own. A case ends in one of four ways:

    words      the guard refuses the address or the port it leads to, and these words are part of the reason
    NO_URL     it never becomes a URL that is asked for
    NO_NAME    no name server knows the name
    THE_WEB    it only looks dangerous: it leads to the server that may be asked
"""

from __future__ import annotations

from typing import Final, NamedTuple

NO_URL, NO_NAME, THE_WEB = "no URL", "no name", "the web"
PUBLIC = "127.0.0.2"
"""The one address that may be asked."""


class Case(NamedTuple):
    family: str
    text: str
    ends: str


class Answers(NamedTuple):
    """What the name server says of a name: to the first question, and to all that follow."""

    first: tuple[str, ...]
    later: tuple[str, ...] = ()
    alias: str = ""


LOOPBACK_4 = """
127.0.0.1 127.1 127.0.1 2130706433 0x7f000001 0x7F000001 0X7f000001 017700000001 0177.0.0.1 0177.0.0.01 0177.0.1 0177.1
0x7f.0.0.1 0x7f.0x0.0x0.0x1 0x7f.0.1 0x7f.1 127.0x1 127.0.0x1 127.0.0.0x1 127.0.0.01 127.00.00.01 0x7f.00.0x0.01
0177.0x0.1 0000177.0.0.1 0x0000007f.1 127.0.0.1. 127.1. 2130706433. 0x7f000001. 0177.1. 127.0.0.3 127.3 2130706435
127.255.255.254 0x7ffffffe 127.0.77 １２７.０.０.１ １２７.1 127。0。0。1 127．0．0．1 127｡0｡0｡1 127。1 ①②⑦.⓪.⓪.① ①②⑦.①
𝟏𝟐𝟕.𝟎.𝟎.𝟏 𝟭𝟮𝟳.𝟭 ２１３０７０６４３３ ０ｘ７ｆ.1 %31%32%37.%30.%30.%31 127%2e0%2e0%2e1 %31%32%37%2E1 127.0.0.%31 0x7f.%31
%EF%BC%91%EF%BC%92%EF%BC%97.1 127.0.\u00ad0.1 12\u200b7.1 localhost LOCALHOST localhost. LocalHost sub.localhost
a.b.localhost. %6c%6f%63alhost ｌｏｃａｌｈｏｓｔ ⓛⓞⓒⓐⓛⓗⓞⓢⓣ local\u00adhost
"""
UNSPECIFIED_4 = "0 0. 00 0x0 0.0.0.0 0.0 000000000000 0x00000000 0.1.2.3 ０ ⓪"
BROKEN_4 = """
127.0.0.257 256.0.0.1 4294967296 0x100000000 040000000000 127.0.0.1.5 127..0.1 0x7g.1 08.0.0.1 127.0.0.09 [127.0.0.1]
[127.1] 127.0.0.1%00 127.0.0.1%20 127.0.0.1%2f 127.0.0.1%23 127.0.0.1%0d%0a 127.0.0.1%5c 1.2.3.4.5.6
"""
PRIVATE_4 = """
10.0.0.1 167772161 0xa.1 012.1 0xa000001 10.1 10.255.255.255 172.16.0.1 2886729729 172.31.255.254 0xac.16.1 192.168.0.1
3232235521 0xc0a80001 0300.0250.1 192.168.1 １９２.１６８.１.１ 192。168。0。1
"""
RESERVED_4 = {
    "100.64.0.1": "carrier", "1681915905": "carrier", "100.127.255.254": "carrier", "169.254.1.1": "link-local",
    "0xa9fe0101": "link-local", "224.0.0.1": "multicast", "239.255.255.250": "multicast", "3758096385": "multicast",
    "240.0.0.1": "reserved", "255.255.255.255": "reserved", "4294967295": "reserved", "037777777777": "reserved",
    "0xffffffff": "reserved", "192.0.0.8": "reserved", "192.0.0.170": "reserved", "192.0.2.1": "documentation",
    "198.51.100.1": "documentation", "203.0.113.1": "documentation", "198.18.0.1": "benchmarks",
    "198.19.255.254": "benchmarks", "192.88.99.1": "6to4", "192.31.196.1": "AS112", "192.175.48.1": "AS112",
    "192.52.193.1": "multicast",
}  # fmt: skip
METADATA = """
169.254.169.254 2852039166 0xa9fea9fe 0251.0376.0251.0376 0xa9.0xfe.0xa9.0xfe 169.254.43518 169.16689662 025177524776
169.254.169.254. ①⑥⑨.②⑤④.①⑥⑨.②⑤④ 169。254。169。254 %31%36%39.254.169.254 100.100.100.200 1684301000 168.63.129.16
2822734096 192.0.0.192 169.254.170.2 169.254.170.23 169.254.42.42 169.254.0.23 [::ffff:169.254.169.254]
[::ffff:a9fe:a9fe] [64:ff9b::169.254.169.254] [64:ff9b::a9fe:a9fe] [2002:a9fe:a9fe::1] [2a00:1450::5efe:a9fe:a9fe]
[fd00:ec2::254] [fd00:ec2:0:0:0:0:0:254] [fd00:ec2::23] [fd20:ce::254] [fd00:42::42] metadata.google.internal metadata
metadata.google.internal. METADATA.GOOGLE.INTERNAL instance-data
"""
LOOPBACK_6 = """
[::1] [0:0:0:0:0:0:0:1] [0000:0000:0000:0000:0000:0000:0000:0001] [::0001] [::0.0.0.1] [0::1] [::ffff:127.0.0.1]
[::ffff:7f00:1] [::FFFF:127.0.0.1] [0:0:0:0:0:ffff:7f00:0001] [::ffff:127.0.0.3] [::127.0.0.1] [::7f00:1]
[64:ff9b::127.0.0.1] [64:ff9b::7f00:1] [2002:7f00:1::] [2002:7f00:0001::1] [2002:7f00:3::5efe:1.1.1.1]
[2002:101:101::5efe:7f00:1] [2001:0:4136:e378:8000:63bf:80ff:fffe] [2001:0:7f00:1:8000:63bf:3fff:fdd2]
[2a00:1450::5efe:7f00:1] [2a00:1450::5efe:127.0.0.1] [2a00:1450::200:5efe:127.0.0.3]
"""
OTHERS_6 = {
    "[::]": "unspecified", "[::0]": "unspecified", "[0:0:0:0:0:0:0:0]": "unspecified",
    "[::ffff:0.0.0.0]": "unspecified",
    "[::2]": "unspecified", "[::1.1.1.1]": "old form", "[::ffff:0:127.0.0.1]": "reserved",
    "[::ffff:10.0.0.1]": "private", "[::ffff:a00:1]": "private", "[::ffff:192.168.0.1]": "private",
    "[0:0:0:0:0:ffff:ac10:1]": "private", "[64:ff9b::10.0.0.1]": "private", "[64:ff9b::c0a8:1]": "private",
    "[2002:a00:1::]": "private", "[2002:c0a8:1::1]": "private", "[2a00:1450::200:5efe:10.0.0.1]": "private",
    "[64:ff9b:1::127.0.0.1]": "NAT64", "[64:ff9b:1:7f00:0:100::]": "NAT64", "[64:ff9b:1::a00:1]": "NAT64",
    "[64:ff9b::127.0.0.2]": "loopback", "[2002:7f00:2::]": "loopback", "[2a00:1450::5efe:7f00:2]": "loopback",
    "[fe80::1]": "link-local", "[fe80::5efe:127.0.0.1]": "link-local", "[febf::1]": "link-local",
    "[fc00::1]": "private", "[fd12:3456:789a::1]": "private", "[FD00::1]": "private", "[fec0::1]": "site-local",
    "[ff02::1]": "multicast", "[ff05::2]": "multicast", "[ff0e::1]": "multicast", "[::ffff:224.0.0.1]": "multicast",
    "[100::1]": "reserved", "[2001:db8::1]": "reserved", "[3fff::1]": "reserved", "[2001:2::1]": "reserved",
    "[2001:10::1]": "reserved", "[2001:20::1]": "reserved", "[5f00::1]": "reserved", "[4000::1]": "reserved",
    "[4000::5efe:1.1.1.1]": "reserved", "[2620:4f:8000::1]": "AS112", "[::ffff:255.255.255.255]": "reserved",
}  # fmt: skip
"""The NAT64, 6to4 and ISATAP forms of the very address that may be asked lead elsewhere, so they are refused too."""
BROKEN_6 = """
[fe80::1%25eth0] [::1%25lo] [fe80::1%eth0] [::1%lo] [::1%1] [::1 ::1 [::1]] [[::1]] [::ffff:127.1] [::ffff:0x7f.1]
[::ffff:2130706433] [::1]. [:::1] [1::2::3] [::g] [::ffff:127.0.0.1.] [::１] [0:0:0:0:0:0:0:0:1]
[v1.127] [%3a:1] [::%31]
"""
NAMES: Final = {
    "to-loopback.web.test": (Answers(("127.0.0.1",)), "loopback"),
    "to-other-loopback.web.test": (Answers(("127.0.0.3",)), "loopback"),
    "to-unspecified.web.test": (Answers(("0.0.0.0",)), "unspecified"),
    "to-private.web.test": (Answers(("10.0.0.1",)), "private"),
    "to-two-private.web.test": (Answers(("10.0.0.1", "192.168.0.1")), "private"),
    "to-metadata.web.test": (Answers(("169.254.169.254",)), "metadata"),
    "to-multicast.web.test": (Answers(("224.0.0.1",)), "multicast"),
    "to-carrier.web.test": (Answers(("100.64.0.1",)), "carrier"),
    "to-loopback-6.web.test": (Answers(("::1",)), "loopback"),
    "to-mapped.web.test": (Answers(("::ffff:127.0.0.1",)), "loopback"),
    "to-compatible.web.test": (Answers(("::127.0.0.1",)), "loopback"),
    "to-nat64.web.test": (Answers(("64:ff9b::7f00:1",)), "loopback"),
    "to-own-nat64.web.test": (Answers(("64:ff9b:1::7f00:1",)), "NAT64"),
    "to-6to4.web.test": (Answers(("2002:7f00:1::",)), "loopback"),
    "to-isatap.web.test": (Answers(("2a00:1450::5efe:7f00:1",)), "loopback"),
    "to-link-local-6.web.test": (Answers(("fe80::1",)), "link-local"),
    "to-unique-local.web.test": (Answers(("fd00::1",)), "private"),
    "alias.web.test": (Answers(("127.0.0.1",), alias="end.web.test"), "loopback"),
    "alias-out.web.test": (Answers(("127.0.0.1",), alias="end.elsewhere.test"), "loopback"),
    "alias-6.web.test": (Answers(("::1",), alias="end-6.web.test"), "loopback"),
    "127.0.0.1.nip.test": (Answers(("127.0.0.1",)), "loopback"),
    "7f000001.nip.test": (Answers(("127.0.0.1",)), "loopback"),
    "xn--to-loopback-.web.test": (Answers(("127.0.0.1",)), "loopback"),
    "mixed.web.test": (Answers(("127.0.0.1", PUBLIC)), THE_WEB),
    "mixed-too.web.test": (Answers((PUBLIC, "127.0.0.1", "10.0.0.1")), THE_WEB),
    "rebind.web.test": (Answers((PUBLIC,), ("127.0.0.1",)), "loopback"),
    "rebind-far.web.test": (Answers((PUBLIC,), ("10.0.0.1",)), "private"),
    "rebind-cloud.web.test": (Answers((PUBLIC,), ("169.254.169.254",)), "metadata"),
    "rebind-6.web.test": (Answers((PUBLIC,), ("::1",)), "loopback"),
    "rebind-mapped.web.test": (Answers((PUBLIC,), ("::ffff:127.0.0.1",)), "loopback"),
    "rebind-mixed.web.test": (Answers((PUBLIC,), ("127.0.0.1", "127.0.0.3")), "loopback"),
    "rebind-both.web.test": (Answers((PUBLIC, "127.0.0.1"), ("127.0.0.1",)), "loopback"),
    "metadata.google.internal": (Answers(("169.254.169.254",)), "metadata"),
    "metadata": (Answers(("169.254.169.254",)), "metadata"),
    "instance-data": (Answers(("169.254.169.254",)), "metadata"),
}
"""Names with their addresses. `rebind` ones show a good address for robots.txt and another when the page is asked."""
GOOD_NAMES: Final = ("hub.web.test", "good.test", "ports.web.test", "maps.test", "www.maps.test", "feeds.test")

TRICKS = {
    "http:\\\\127.0.0.1:{web}\\{n}": "loopback",
    "http:/\\127.0.0.1:{web}/{n}": "loopback",
    "http:////127.0.0.1:{web}/{n}": "loopback",
    "//127.0.0.1:{web}/{n}": "loopback",
    "\\\\127.0.0.1:{web}\\{n}": "loopback",
    "/\\127.0.0.1:{web}/{n}": "loopback",
    "\\/127.0.0.1:{web}/{n}": "loopback",
    "///127.0.0.1:{web}/{n}": "loopback",
    "/////127.0.0.1:{web}/{n}": "loopback",
    "//[::1]:{web}/{n}": "loopback",
    "//localhost:{web}/{n}": "loopback",
    "HTTP://127.0.0.1:{web}/{n}": "loopback",
    "hTtP://[::1]:{web}/{n}": "loopback",
    "ht\ttp://127.0.0.1:{web}/{n}": "loopback",
    "http://127\t.0.0.1:{web}/{n}": "loopback",
    "http://127.0.0.1\t:{web}/{n}": "loopback",
    "http:/\t/127.0.0.1:{web}/{n}": "loopback",
    "ht\ntp://127.0.0.1:{web}/{n}": "loopback",
    "http://127.0\n.0.1:{web}/{n}": "loopback",
    "\r\nhttp://127.0.0.1:{web}/{n}\r\n": "loopback",
    "  http://127.0.0.1:{web}/{n}  ": "loopback",
    "http://127.0.0.1:{web}\\@good.test/{n}": "loopback",
    "http://127.0.0.1:{web}/@good.test/{n}": "loopback",
    "http://127.0.0.1:{web}/{n}#@good.test/": "loopback",
    "http://127.0.0.1:{web}/{n}?@good.test/": "loopback",
    "http://127.0.0.1:0{web}/{n}": "loopback",
    "https://127.0.0.1:{web}/{n}": "loopback",
    "https://127.0.0.1/{n}": "loopback",
    "http://127.0.0.1/{n}": "loopback",
    "http://[::1]/{n}": "loopback",
    "https://[::1]/{n}": "loopback",
    "http://good.test@127.0.0.1:{web}/{n}": NO_URL,
    "http://good.test:80@127.0.0.1:{web}/{n}": NO_URL,
    "http://good.test%2f@127.0.0.1:{web}/{n}": NO_URL,
    "http://good.test%00@127.0.0.1:{web}/{n}": NO_URL,
    "http://127.0.0.1:{web}@good.test:{web}/{n}": NO_URL,
    "http://user:secret@good.test:{web}/{n}": NO_URL,
    "//user:secret@127.0.0.1:{web}/{n}": NO_URL,
    "\\\\user:secret@127.0.0.1:{web}\\{n}": NO_URL,
    "http://a@b@127.0.0.1:{web}/{n}": NO_URL,
    "http://127.0.0.1:99999/{n}": NO_URL,
    "http://127.0.0.1:{web}x/{n}": NO_URL,
    "http://127.0.0.1:-1/{n}": NO_URL,
    "http://127.0.0.1:{web}:80/{n}": NO_URL,
    "http://127.0.0.1 good.test/{n}": NO_URL,
    "http://127.0.0.1%00.good.test/{n}": NO_URL,
    "http://127.0.0.1%23.good.test/{n}": NO_URL,
    "http://127.0.0.1%2f.good.test/{n}": NO_URL,
    "http://127.0.0.1../{n}": NO_NAME,
    "http://127.0.0.-1:{web}/{n}": NO_NAME,
    "http://127.0.0.1.good.test:{web}/{n}": NO_NAME,
    "http://good.test:{web}#@127.0.0.1/{n}": THE_WEB,
    "http://good.test:{web}\\@127.0.0.1/{n}": THE_WEB,
    "http://good.test:{web}/@127.0.0.1/{n}": THE_WEB,
    "http://good.test:{web}/{n}?url=http://127.0.0.1:{web}/": THE_WEB,
    "http://[::ffff:127.0.0.2]:{web}/{n}": THE_WEB,
    "http:127.0.0.1:{web}/{n}": THE_WEB,
    "/127.0.0.1:{web}/{n}": THE_WEB,
}
"""Ways to write a URL. `http:127.0.0.1` without slashes is a relative reference."""
SCHEMES = """
file:///etc/passwd file://127.0.0.1/etc/passwd file:/etc/passwd file://localhost/etc/hosts gopher://127.0.0.1:{web}/_GET
ftp://127.0.0.1:{web}/ ftps://127.0.0.1/ sftp://127.0.0.1/ tftp://127.0.0.1/x dict://127.0.0.1:{web}/stat
ldap://127.0.0.1:{web}/ ldaps://127.0.0.1/ telnet://127.0.0.1:{web}/ smb://127.0.0.1/share scp://127.0.0.1/x
imap://127.0.0.1/ pop3://127.0.0.1/ smtp://127.0.0.1:{web}/ rtsp://127.0.0.1/ mqtt://127.0.0.1/ redis://127.0.0.1:{web}/
ws://127.0.0.1:{web}/ wss://127.0.0.1:{web}/ jar:http://127.0.0.1:{web}!/ view-source:http://127.0.0.1:{web}/
feed:http://127.0.0.1:{web}/ blob:http://127.0.0.1:{web}/x data:text/html,x javascript:location='http://127.0.0.1/'
http+unix://%2fvar%2frun%2fdocker.sock/ unix:/var/run/docker.sock netdoc:///etc/passwd phar://x php://filter about:blank
mailto:root@127.0.0.1 urn:x:127.0.0.1 xhttp://127.0.0.1:{web}/ https+x://127.0.0.1/
"""
OTHER_SERVICES = """
1 7 19 21 22 23 25 53 79 110 111 135 139 143 389 445 465 514 587 631 636 873 993 995 1080 1433 1521 2049 2181 2375 3128
3306 3389 5060 5432 5672 5900 6000 6379 6667 6697 8009 9042 9092 9200 10250 11211 27017
"""


def _at_hosts(family: str, hosts: str, ends: str) -> list[Case]:
    return [Case(family, f"http://{host}:{{web}}/{{n}}", ends) for host in hosts.split()]


def _at_each(family: str, hosts: dict[str, str]) -> list[Case]:
    return [Case(family, f"http://{host}:{{web}}/{{n}}", ends) for host, ends in hosts.items()]


CASES: Final = tuple(
    dict.fromkeys(
        [
            *_at_hosts("loopback, IPv4", LOOPBACK_4, "loopback"),
            *_at_hosts("unspecified, IPv4", UNSPECIFIED_4, "unspecified"),
            *_at_hosts("broken IPv4", BROKEN_4, NO_URL),
            *_at_hosts("private, IPv4", PRIVATE_4, "private"),
            *_at_each("reserved, IPv4", RESERVED_4),
            *_at_hosts("metadata", METADATA, "metadata"),
            *_at_hosts("loopback, IPv6", LOOPBACK_6, "loopback"),
            *_at_each("other IPv6", OTHERS_6),
            *_at_hosts("broken IPv6", BROKEN_6, NO_URL),
            *_at_each("names", {name: ends for name, (_, ends) in NAMES.items()}),
            *(Case("tricks", text, ends) for text, ends in TRICKS.items()),
            *(Case("schemes", text, NO_URL) for text in SCHEMES.split()),
            *(Case("ports", f"http://ports.web.test:{port}/{{n}}", f"port {port} ") for port in OTHER_SERVICES.split()),
            *(Case("ports", f"https://{PUBLIC}:{port}/{{n}}", f"port {port} ") for port in ("22", "25", "6379")),
        ]
    )
)
