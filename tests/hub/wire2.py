"""HTTP/2 over TLS for the test Hub: what curl speaks where a server offers it."""

import socket
import ssl

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
from wire import Entry, Host, Request, Response


class Host2(Host):
    """Offers h2 by ALPN. Requests of one connection are answered one after another, each in whole; a response with
    `cut_after` resets its stream there."""

    def __init__(self, *arguments, tls: ssl.SSLContext, **options) -> None:
        tls.set_alpn_protocols(["h2"])
        self.accepted = 0
        super().__init__(*arguments, tls=tls, **options)

    def serve(self, plain: socket.socket) -> None:
        try:
            connection = self.tls.wrap_socket(plain, server_side=True)
            with self.lock:
                self.connections.discard(plain)
                self.connections.add(connection)
                self.accepted += 1
            Session(self, connection).run()
        except (OSError, h2.exceptions.ProtocolError):
            pass
        finally:
            plain.close()


class Session:
    def __init__(self, host: Host2, connection: ssl.SSLSocket) -> None:
        self.host, self.socket = host, connection
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.waiting: list[tuple[int, Request]] = []
        self.gone: set[int] = set()

    def run(self) -> None:
        self.h2.initiate_connection()
        self.flush()
        while not self.host.closing.is_set():
            if self.waiting:
                self.answer(*self.waiting.pop(0))
            else:
                self.receive()

    def flush(self) -> None:
        self.socket.sendall(self.h2.data_to_send())

    def receive(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionResetError
        for event in self.h2.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                headers = dict(event.headers)
                headers["host"] = headers.get(":authority", "")
                self.waiting.append((event.stream_id, Request(headers[":method"], headers[":path"], headers,
                                                              self.host.name)))
            elif isinstance(event, h2.events.StreamReset):
                self.gone.add(event.stream_id)
            elif isinstance(event, h2.events.ConnectionTerminated):
                raise ConnectionResetError
        self.flush()

    def answer(self, stream: int, request: Request) -> None:
        response = self.host.handle(request)
        entry = Entry(request.method, self.host.name, request.target, request.headers, response.status, response.blob)
        self.host.log.append(entry)
        try:
            self.send(stream, request, response, entry)
        except (h2.exceptions.StreamClosedError, KeyError):
            pass  # the client does not want it any more
        finally:
            entry.done = True

    def send(self, stream: int, request: Request, response: Response, entry: Entry) -> None:
        headers = [(":status", str(response.status)), *((name.lower(), value) for name, value in
                                                        response.headers.items())]
        if response.length is not None and response.status != 304:
            headers.append(("content-length", str(response.length)))
        bare = request.method == "HEAD" or response.status == 304
        self.h2.send_headers(stream, headers, end_stream=bare)
        self.flush()
        if bare:
            return
        for block in response.blocks():
            view = memoryview(block)
            while view and stream not in self.gone:
                room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size, len(view))
                if response.cut_after is not None:
                    room = min(room, response.cut_after - entry.sent)
                    if entry.sent >= response.cut_after:
                        self.h2.reset_stream(stream, h2.errors.ErrorCodes.INTERNAL_ERROR)
                        return self.flush()
                if room <= 0:
                    self.receive()
                    continue
                self.h2.send_data(stream, bytes(view[:room]))
                self.flush()
                entry.sent += room
                view = view[room:]
        if stream not in self.gone:
            self.h2.end_stream(stream)
            self.flush()
