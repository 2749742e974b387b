"""What each libcurl error means to a crawl: one table, closed by a test against pycurl's own list."""

from __future__ import annotations

from typing import Final

import pycurl

from harvestman.model import FailureKind

KINDS: Final[dict[int, FailureKind]] = {
    pycurl.E_COULDNT_RESOLVE_HOST: FailureKind.DNS,
    pycurl.E_COULDNT_RESOLVE_PROXY: FailureKind.PROXY,
    pycurl.E_COULDNT_CONNECT: FailureKind.CONNECT,
    pycurl.E_INTERFACE_FAILED: FailureKind.CONNECT,
    pycurl.E_NO_CONNECTION_AVAILABLE: FailureKind.CONNECT,
    # The connection was there and broke before an answer came; after the head it is a cut (see `kind_of`).
    pycurl.E_GOT_NOTHING: FailureKind.CONNECT,
    pycurl.E_SEND_ERROR: FailureKind.CONNECT,
    pycurl.E_RECV_ERROR: FailureKind.CONNECT,
    pycurl.E_SEND_FAIL_REWIND: FailureKind.CONNECT,
    pycurl.E_AGAIN: FailureKind.CONNECT,
    pycurl.E_OPERATION_TIMEDOUT: FailureKind.TIMEOUT,
    pycurl.E_PEER_FAILED_VERIFICATION: FailureKind.TLS,
    pycurl.E_SSL_CONNECT_ERROR: FailureKind.TLS,
    pycurl.E_SSL_CERTPROBLEM: FailureKind.TLS,
    pycurl.E_SSL_CIPHER: FailureKind.TLS,
    pycurl.E_SSL_CACERT_BADFILE: FailureKind.TLS,
    pycurl.E_SSL_CRL_BADFILE: FailureKind.TLS,
    pycurl.E_SSL_ENGINE_NOTFOUND: FailureKind.TLS,
    pycurl.E_SSL_ENGINE_SETFAILED: FailureKind.TLS,
    pycurl.E_SSL_ENGINE_INITFAILED: FailureKind.TLS,
    pycurl.E_SSL_INVALIDCERTSTATUS: FailureKind.TLS,
    pycurl.E_SSL_ISSUER_ERROR: FailureKind.TLS,
    pycurl.E_SSL_PINNEDPUBKEYNOTMATCH: FailureKind.TLS,
    pycurl.E_SSL_SHUTDOWN_FAILED: FailureKind.TLS,
    pycurl.E_USE_SSL_FAILED: FailureKind.TLS,
    pycurl.E_PARTIAL_FILE: FailureKind.TRUNCATED,
    pycurl.E_FILESIZE_EXCEEDED: FailureKind.TOO_LARGE,
    pycurl.E_BAD_CONTENT_ENCODING: FailureKind.PROTOCOL,
    pycurl.E_FTP_WEIRD_SERVER_REPLY: FailureKind.PROTOCOL,  # a malformed HTTP answer as well, despite its name
    pycurl.E_HTTP2: FailureKind.PROTOCOL,
    pycurl.E_HTTP_RETURNED_ERROR: FailureKind.PROTOCOL,
    pycurl.E_UNSUPPORTED_PROTOCOL: FailureKind.PROTOCOL,  # also: an HTTP/0.9 answer
    pycurl.E_URL_MALFORMAT: FailureKind.PROTOCOL,
    pycurl.E_LOGIN_DENIED: FailureKind.PROTOCOL,  # credentials in the URL, which we do not send
    pycurl.E_READ_ERROR: FailureKind.PROTOCOL,
    # One of our own callbacks stopped the transfer; it has left its verdict, so these are only the floor.
    pycurl.E_WRITE_ERROR: FailureKind.PROTOCOL,
    pycurl.E_ABORTED_BY_CALLBACK: FailureKind.PROTOCOL,
    # Our side is short of something; the URL is worth another try.
    pycurl.E_OUT_OF_MEMORY: FailureKind.CONNECT,
    pycurl.E_FAILED_INIT: FailureKind.CONNECT,
    97: FailureKind.CONNECT,  # a SOCKS proxy said no; whose fault that is says `of_proxy`
    95: FailureKind.PROTOCOL,  # HTTP/3; pycurl has no name for it
    96: FailureKind.CONNECT,  # QUIC
    99: FailureKind.CONNECT,  # poll() failed
    100: FailureKind.PROTOCOL,  # a field larger than libcurl takes
}

IMPOSSIBLE: Final[frozenset[str]] = frozenset(
    {
        "E_ALREADY_COMPLETE",
        "E_BAD_CALLING_ORDER",
        "E_BAD_DOWNLOAD_RESUME",
        "E_BAD_FUNCTION_ARGUMENT",
        "E_BAD_PASSWORD_ENTERED",
        "E_CALL_MULTI_PERFORM",
        "E_CHUNK_FAILED",
        "E_CONV_FAILED",
        "E_CONV_REQD",
        "E_FILE_COULDNT_READ_FILE",
        "E_FUNCTION_NOT_FOUND",
        "E_HTTP_POST_ERROR",
        "E_HTTP_RANGE_ERROR",
        "E_LIBRARY_NOT_FOUND",
        "E_MALFORMAT_USER",
        "E_NOT_BUILT_IN",
        "E_OK",
        "E_QUOTE_ERROR",
        "E_RANGE_ERROR",
        "E_REMOTE_ACCESS_DENIED",
        "E_REMOTE_DISK_FULL",
        "E_REMOTE_FILE_EXISTS",
        "E_REMOTE_FILE_NOT_FOUND",
        "E_SHARE_IN_USE",
        "E_SSH",
        "E_TOO_MANY_REDIRECTS",
        "E_UNKNOWN_OPTION",
        "E_UPLOAD_FAILED",
        "E_URL_MALFORMAT_USER",
    }
)
"""Errors of uploads, ranges and options: a plain GET as we set it up cannot end in them."""

IMPOSSIBLE_FAMILIES: Final = ("E_FTP_", "E_TFTP_", "E_LDAP_", "E_RTSP_", "E_TELNET_", "E_UNKNOWN_TELNET_", "E_MULTI_")
"""Other protocols (PROTOCOLS allows only http and https), and results of the multi interface's own calls."""

CERTIFICATE: Final[frozenset[int]] = frozenset(
    {pycurl.E_PEER_FAILED_VERIFICATION, pycurl.E_SSL_ISSUER_ERROR, pycurl.E_SSL_INVALIDCERTSTATUS}
)
"""The other side speaks TLS well but its certificate is not valid for the host."""

_SOCKS: Final = 97
_TLS: Final = frozenset(code for code, kind in KINDS.items() if kind is FailureKind.TLS)
_OF_TARGET: Final = frozenset({3, 15, 16, 19, 20, 21, 22, 23, 24, 25})
"""CURLPX_* answers of a SOCKS proxy that speak of the host behind it: refused, unreachable, not allowed, too late, and
(25) what Tor says of onion services. So may a connection that is closed instead of an answer (3, 15, 16), and a
"general failure" (20): when in doubt the host is to blame, since its tries are counted and end."""


def of_proxy(code: int, curl: pycurl.Curl, proxy: str, url: str) -> bool:
    """Whether a request failed at the proxy: it cannot be reached, is not who it says it is, or rejects us."""
    tunnel = curl.getinfo(pycurl.HTTP_CONNECTCODE)
    if code == _SOCKS:
        return curl.getinfo(pycurl.PROXY_ERROR) not in _OF_TARGET
    if code == pycurl.E_COULDNT_CONNECT:
        return tunnel in (0, 407)
    if code in _TLS:
        # Before there is a tunnel, and where none is needed, the only TLS is that with the proxy itself.
        return proxy.startswith("https:") and (tunnel == 0 or url.startswith("http:"))
    return code == pycurl.E_COULDNT_RESOLVE_PROXY


_BROKEN: Final = frozenset({pycurl.E_RECV_ERROR, pycurl.E_SEND_ERROR, pycurl.E_GOT_NOTHING, pycurl.E_HTTP2})


def kind_of(code: int, *, head_complete: bool) -> FailureKind:
    """The kind of failure a libcurl code stands for; a code we have never heard of is a protocol fault."""
    if head_complete and code in _BROKEN:
        return FailureKind.TRUNCATED
    return KINDS.get(code, FailureKind.PROTOCOL)
