"""A small store over TCP: one rank serves, all set and get. It is what a job needs to share an id, and no database.

    request    b"S" key value | b"G" key        each of key and value as 4 bytes of length, big-endian, and the bytes
    answer     b"V" value, once the key is there; of a set, b"V" with nothing

Requests are not authenticated: serve at an address that strangers do not reach, as torch.distributed's store wants as well.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import threading
import time

from .results import MeetingError

_LONGEST = 1 << 20


def _read(connection: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        more = connection.recv(size - len(got))
        if not more:
            raise ConnectionError("the other end closed the connection")
        got += more
    return got


def _read_field(connection: socket.socket) -> bytes:
    (size,) = struct.unpack("!I", _read(connection, 4))
    if size > _LONGEST:
        raise ConnectionError(f"a field of {size} bytes: this is no peer of the store")
    return _read(connection, size)


def _field(value: bytes) -> bytes:
    return struct.pack("!I", len(value)) + value


def _listen(host: str, port: int) -> socket.socket:
    """At the loopback address if that is named; else at all addresses, because a host's own name may mean loopback to itself."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    if host == "localhost" or ipaddress.ip_address(address[0]).is_loopback and address[0] == host:
        return socket.create_server(address[:2], family=family, backlog=1024)
    both = socket.has_dualstack_ipv6()
    return socket.create_server(
        ("", port), family=socket.AF_INET6 if both else socket.AF_INET, dualstack_ipv6=both, backlog=1024
    )


class _Server:
    """Holds the values and answers each connection on a thread of its own: they are as many as ranks, and short."""

    def __init__(self, host: str, port: int) -> None:
        self._values: dict[bytes, bytes] = {}  # guarded by _changed
        self._changed = threading.Condition()
        self._closed = False  # guarded by _changed
        self._listener = _listen(host, port)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, name="hccl-store", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()[0]
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=(connection,), name="hccl-store-peer", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                while True:
                    kind, key = _read(connection, 1), _read_field(connection)
                    if kind == b"S":
                        self._set(key, _read_field(connection))
                        connection.sendall(b"V" + _field(b""))
                    elif kind == b"G":
                        connection.sendall(b"V" + _field(self._get(key)))
                    else:
                        return
            except (OSError, ConnectionError):
                pass  # the peer is gone, or the store is closed: the peer sees the end of the connection

    def _set(self, key: bytes, value: bytes) -> None:
        with self._changed:
            self._values[key] = value
            self._changed.notify_all()

    def _get(self, key: bytes) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or key in self._values)
            if self._closed:
                raise ConnectionError("the store is closed")
            return self._values[key]

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        try:
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        except OSError:
            pass
        self._listener.close()


class TCPStore:
    """Values by key, for all processes that name the same host and port; one of them, and it alone, says serve=True.

    `get` waits until the key is there, at most `timeout` seconds for the server and the key together.
    """

    def __init__(self, host: str, port: int, serve: bool = False, timeout: float = 300) -> None:
        self.host, self.timeout = host, timeout
        self._server: _Server | None = None
        if serve:
            try:
                self._server = _Server(host, port)
            except OSError as e:
                raise MeetingError(
                    f"the store cannot listen at {host} port {port}: {e.strerror or e}; choose an address of this host and a "
                    "free port"
                ) from e
        self.port = self._server.port if self._server is not None else port

    def set(self, key: str, value: bytes | str) -> None:
        data = value.encode() if isinstance(value, str) else value
        self._ask(b"S" + _field(key.encode()) + _field(data), f"key {key!r} cannot be set")

    def get(self, key: str) -> bytes:
        return self._ask(b"G" + _field(key.encode()), f"key {key!r} did not come")

    def _ask(self, request: bytes, failure: str) -> bytes:
        """Asks again until the limit, because the server may not be up yet, or be the one of the job before."""
        until, last = time.monotonic() + self.timeout, "no answer"
        while True:
            try:
                return self._ask_once(request, until)
            except socket.gaierror as e:
                raise MeetingError(f"the store's host {self.host!r} is not known: {e.strerror}") from e
            except OSError as e:
                last = e.strerror or str(e) or last
            if time.monotonic() >= until:
                raise MeetingError(
                    f"{failure} within {self.timeout:g} s from the store at {self.host} port {self.port} ({last}): is the "
                    "rank that serves it, usually rank 0, running?"
                )
            time.sleep(0.02)

    def _ask_once(self, request: bytes, until: float) -> bytes:
        with socket.create_connection((self.host, self.port), timeout=max(0.001, until - time.monotonic())) as connection:
            connection.sendall(request)
            connection.settimeout(max(0.001, until - time.monotonic()))
            if _read(connection, 1) != b"V":
                raise ConnectionError("the answer is not the store's")
            return _read_field(connection)

    def close(self) -> None:
        """Ends the server; the other ends have nothing to close."""
        if self._server is not None:
            self._server.close()
