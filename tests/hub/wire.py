"""HTTP/1.1 over sockets, as a server that can also misbehave: the standard library's refuses to lie about lengths,
to stop in the middle of a header, or to be fast."""

import io
import itertools
import os
import pathlib
import socket
import ssl
import struct
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

REASONS = {200: "OK", 206: "Partial Content", 302: "Found", 304: "Not Modified", 307: "Temporary Redirect",
           401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
           416: "Range Not Satisfiable", 429: "Too Many Requests", 503: "Service Unavailable"}
LONGEST_HEAD = 64 << 10
BLOCK = 256 << 10


@dataclass
class Request:
    method: str
    target: str
    headers: dict[str, str]  # names in lower case
    host: str = ""  # which of the server's hosts was asked: its name, not its address

    authority: str | None = None  # whom a proxy was asked for

    def __post_init__(self) -> None:
        if self.target.startswith("http://"):  # as one asks a proxy
            self.authority, slash, rest = self.target.removeprefix("http://").partition("/")
            self.target = slash + rest
        self.path, _, query = self.target.partition("?")
        self.query = dict(urllib.parse.parse_qsl(query))

    @property
    def segments(self) -> list[str]:
        return [urllib.parse.unquote(part) for part in self.path.strip("/").split("/")]

    @property
    def token(self) -> str | None:
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token if scheme.lower() == "bearer" else None


@dataclass
class Part:
    """A part of a file on disk."""
    path: pathlib.Path
    offset: int
    length: int

    def blocks(self) -> Iterator[bytes]:
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            left = self.length
            while left and (block := file.read(min(left, BLOCK))):
                left -= len(block)
                yield block


@dataclass
class Response:
    """What to send, and how to misbehave while sending it."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | Part | Iterable[bytes] = b""  # an iterable is sent in chunks, without a length
    blob: str | None = None  # whose content the body is, for the log

    declared_length: int | None = None  # another Content-Length than the right one
    cut_after: int | None = None  # body bytes after which the connection is reset
    cut_head_after: int | None = None  # bytes of the head after which the connection is reset
    block: int = BLOCK  # bytes sent at once where one of these is set
    pause: float = 0  # seconds before each block
    drip_after: int | None = None  # body bytes that are sent at once; the others one by one, with pauses
    stall_after: int | None = None  # body bytes after which nothing comes any more
    raw: bytes | None = None  # sent instead of everything
    head_pause: float = 0  # seconds before each line of the head, which then does not end
    interim_pause: float | None = None  # seconds between answers of 100 Continue, which do not end

    @property
    def length(self) -> int | None:
        if isinstance(self.body, bytes):
            return len(self.body)
        return self.body.length if isinstance(self.body, Part) else None

    @property
    def misbehaves(self) -> bool:
        return self.pause > 0 or self.cut_after is not None or self.stall_after is not None

    def blocks(self) -> Iterator[bytes]:
        if isinstance(self.body, Part):
            source = self.body.blocks()
        else:
            source = iter([self.body]) if isinstance(self.body, bytes) else iter(self.body)
        for data in source:
            if self.drip_after is not None:
                yield data[: self.drip_after]
                yield from (data[i : i + 1] for i in range(self.drip_after, len(data)))
                continue
            for start in range(0, len(data), self.block):
                yield data[start : start + self.block]


@dataclass
class Entry:
    """One request, as the log keeps it."""
    method: str
    host: str
    target: str
    headers: dict[str, str]
    status: int
    blob: str | None
    sent: int = 0  # bytes of the body that were handed to the system
    done: bool = False  # `sent` is final

    @property
    def path(self) -> str:
        return urllib.parse.unquote(self.target.partition("?")[0])


def read_request(stream: io.BufferedReader) -> Request | None:
    """The next request on a connection, or None at its end."""
    line = stream.readline(LONGEST_HEAD)
    parts = line.decode("latin-1").split()
    if len(parts) != 3:
        return None
    headers = {}
    while (line := stream.readline(LONGEST_HEAD)) not in (b"\r\n", b"\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    if length := int(headers.get("content-length", 0)):
        stream.read(length)
    return Request(parts[0], parts[1], headers)


class Gone(Exception):
    """The connection ends here, as the response wants it."""


class Connection:
    def __init__(self, connection: socket.socket, closing: threading.Event) -> None:
        self.socket, self.closing = connection, closing

    def reset(self) -> None:
        """Ends the connection with RST, as a proxy that dies does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Gone

    def head(self, request: Request, response: Response) -> bytes:
        headers = dict(response.headers)
        length = response.length if response.declared_length is None else response.declared_length
        if response.status == 304:
            length = None
        elif length is None:
            headers["Transfer-Encoding"] = "chunked"
        if length is not None:
            headers.setdefault("Content-Length", str(length))
        lines = [f"HTTP/1.1 {response.status} {REASONS.get(response.status, 'Something Else')}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")

    def send(self, request: Request, response: Response, entry: Entry) -> None:
        if response.raw is not None:
            self.socket.sendall(response.raw)
            raise Gone
        head = self.head(request, response)
        if response.head_pause:
            self.drip(head.splitlines(keepends=True)[:-1], b"X-More: of it\r\n", response.head_pause)
        if response.interim_pause is not None:
            self.drip([], b"HTTP/1.1 100 Continue\r\n\r\n", response.interim_pause)
        if response.cut_head_after is not None:
            self.socket.sendall(head[: response.cut_head_after])
            self.reset()
        if request.method == "HEAD" or response.status == 304:
            self.socket.sendall(head)
        elif response.misbehaves:
            self.socket.sendall(head)
            self.send_badly(response, entry)
        elif isinstance(response.body, bytes):
            self.socket.sendall(head + response.body)
            entry.sent += len(response.body)
        elif isinstance(response.body, Part):
            self.socket.sendall(head)
            self.send_part(response.body, entry)
        else:
            self.socket.sendall(head)
            for block in response.blocks():
                self.socket.sendall(b"%x\r\n%b\r\n" % (len(block), block))
                entry.sent += len(block)
            self.socket.sendall(b"0\r\n\r\n")
        if response.declared_length not in (None, response.length):
            raise Gone

    def drip(self, lines: list[bytes], repeated: bytes, pause: float) -> None:
        """The lines, and one more again and again."""
        for line in itertools.chain(lines, itertools.repeat(repeated)):
            self.socket.sendall(line)
            if self.closing.wait(pause):
                raise Gone

    def send_part(self, part: Part, entry: Entry) -> None:
        with open(part.path, "rb") as file:
            end = part.offset + part.length
            while (position := part.offset + entry.sent) < end:
                length = min(end - position, 16 << 20)
                if isinstance(self.socket, ssl.SSLSocket):
                    file.seek(position)
                    count = self.socket.send(file.read(min(length, BLOCK)))
                else:
                    count = os.sendfile(self.socket.fileno(), file.fileno(), position, length)
                if count == 0:
                    raise Gone
                entry.sent += count

    def send_badly(self, response: Response, entry: Entry) -> None:
        for block in response.blocks():
            if response.pause and self.closing.wait(response.pause):
                raise Gone
            for limit in (response.cut_after, response.stall_after):
                if limit is not None:
                    block = block[: max(limit - entry.sent, 0)]
            self.socket.sendall(block)
            entry.sent += len(block)
            if response.stall_after is not None and entry.sent >= response.stall_after:
                self.closing.wait()
                raise Gone
            if response.cut_after is not None and entry.sent >= response.cut_after:
                time.sleep(0.05)  # RST discards what the other side has not read yet
                self.reset()


class Host:
    """One listening address, with TLS or without. A thread per connection; every request goes to `handle`, and into
    `log`."""

    def __init__(self, name: str, handle: Callable[[Request], Response], log: list[Entry],
                 address: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.name, self.handle, self.log, self.tls = name, handle, log, tls
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self.connections: set[socket.socket] = set()
        self.listener = socket.create_server((address, port), backlog=1024)
        self.address, self.port = self.listener.getsockname()[:2]
        self.acceptor = threading.Thread(target=self.accept, daemon=True)
        self.acceptor.start()

    @property
    def origin(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.address}:{self.port}"

    def accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections.add(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls:
                plain, connection = connection, self.tls.wrap_socket(connection, server_side=True)
                with self.lock:
                    self.connections.discard(plain)
                    self.connections.add(connection)
            stream = connection.makefile("rb")
            peer = Connection(connection, self.closing)
            while not self.closing.is_set() and (request := read_request(stream)):
                request.host = self.name
                response = self.handle(request)
                entry = Entry(request.method, self.name, request.target, request.headers, response.status,
                              response.blob)
                self.log.append(entry)
                try:
                    peer.send(request, response, entry)
                finally:
                    entry.done = True
                if request.headers.get("connection", "").lower() == "close":
                    break
        except (OSError, Gone, ValueError):
            pass
        finally:
            with self.lock:
                self.connections.discard(connection)
            connection.close()

    def close(self) -> None:
        self.closing.set()
        # The number of a closed socket is given to the next one: a thread that is about to accept from it would take
        # the connections of another host. So the socket is closed when nothing waits at it.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.acceptor.join()
        self.listener.close()
        with self.lock:
            for connection in self.connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
