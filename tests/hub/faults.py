"""Ways in which a Hub, a mirror or the network between can misbehave. Each function makes one fault, for Hub.fault():

    hub.fault("/api/kernels/*/refs", status(503), times=2)
    hub.fault("*.so", cut(1000), host="files")

A fault changes the request before it is answered, or the answer before it is sent.
"""

import fnmatch
import itertools
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from wire import Request, Response

Change = Callable[[Request, Response], Response | None]


@dataclass
class Fault:
    answer: Change | None = None
    ask: Callable[[Request], None] | None = None


@dataclass
class Rule:
    """Where a fault happens, and how often."""
    pattern: str
    fault: Fault
    host: str | None = None
    method: str | None = None
    times: int | None = None  # None: always
    skip: int = 0  # requests that go well before
    seen: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def applies(self, request: Request) -> bool:
        if self.host not in (None, request.host) or self.method not in (None, request.method):
            return False
        target = urllib.parse.unquote(request.target)
        path = target.partition("?")[0]
        if not (fnmatch.fnmatchcase(path, self.pattern) or fnmatch.fnmatchcase(target, self.pattern)):
            return False
        with self.lock:
            self.seen += 1
            count = self.seen - self.skip
        return count > 0 and (self.times is None or count <= self.times)


def changed(**values) -> Fault:
    def answer(_: Request, response: Response) -> None:
        for name, value in values.items():
            setattr(response, name, value)
    return Fault(answer)


def status(code: int, body: bytes = b"", **headers: str) -> Fault:
    """Another status; underscores in the names of headers stand for dashes."""
    named = {name.replace("_", "-"): str(value) for name, value in headers.items()}
    return Fault(lambda *_: Response(code, named, body))


def retry_after(seconds: int | str) -> Fault:
    return status(429, Retry_After=str(seconds))


def rate_limit(seconds: int) -> Fault:
    return status(429, RateLimit=f'"api";r=0;t={seconds}', RateLimit_Policy='"fixed window";"api";q=500;w=300')


def cut(after: int) -> Fault:
    """The connection is reset after so many bytes of the body."""
    return changed(cut_after=after)


def cut_head(after: int) -> Fault:
    return changed(cut_head_after=after)


def trickle(block: int, pause: float) -> Fault:
    return changed(block=block, pause=pause)


def drip_after(size: int, pause: float) -> Fault:
    """So many bytes of the body at once, then one after the other."""
    return changed(drip_after=size, pause=pause)


def slow_head(pause: float) -> Fault:
    """One header after the other, each so many seconds after the last, without end."""
    return changed(head_pause=pause)


def interim(pause: float) -> Fault:
    """100 Continue, again and again."""
    return changed(interim_pause=pause)


def stall(after: int) -> Fault:
    """After so many bytes of the body nothing comes any more, and the connection stays."""
    return changed(stall_after=after)


def wrong_length(by: int) -> Fault:
    """Content-Length says so many bytes more than there are."""
    def answer(_: Request, response: Response) -> None:
        response.declared_length = max((response.length or 0) + by, 0)
    return Fault(answer)


def ignored_range() -> Fault:
    """Range is not understood: 200 and everything."""
    return Fault(ask=lambda request: request.headers.pop("range", None) and None)


def wrong_bytes(at: int = 0) -> Fault:
    """The right length, but one byte is another."""
    def answer(_: Request, response: Response) -> None:
        if response.status in (200, 206):
            content = bytearray(b"".join(response.blocks()))
            if content:
                content[at % len(content)] ^= 0xFF
            response.body = bytes(content)
    return Fault(answer)


def header(name: str, value: str | None) -> Fault:
    """Another value of a header, or none."""
    def answer(_: Request, response: Response) -> None:
        for present in [key for key in response.headers if key.lower() == name.lower()]:
            del response.headers[present]
        if value is not None:
            response.headers[name] = value
    return Fault(answer)


def body(content: bytes, **headers: str) -> Fault:
    """200 with another body."""
    return status(200, content, **headers)


def document(text: str) -> Fault:
    return body(text.encode(), Content_Type="application/json")


def endless(start: bytes, repeated: bytes, total: int = 4 << 30) -> Fault:
    """A body that practically does not end."""
    def blocks() -> Iterator[bytes]:
        yield start
        block = repeated * (65536 // len(repeated) + 1)
        yield from itertools.repeat(block, total // len(block))
    return Fault(lambda *_: Response(200, {"Content-Type": "application/json"}, blocks()))


def endless_pages() -> Fault:
    """Every page of a listing has a next one."""
    pages = itertools.count()

    def answer(request: Request, response: Response) -> None:
        response.headers["Link"] = f'<{request.path}?recursive=true&cursor={next(pages)}>; rel="next"'
    return Fault(answer)


def next_page(url: str) -> Fault:
    return header("Link", f'<{url}>; rel="next"')


def redirect(location: str, code: int = 307) -> Fault:
    return status(code, Location=location)


def redirect_loop() -> Fault:
    return Fault(lambda request, _: Response(307, {"Location": request.target}))


def raw(content: bytes) -> Fault:
    """These bytes, and the end of the connection."""
    return changed(raw=content)
