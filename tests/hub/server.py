#!/usr/bin/env python3
"""A Kernel Hub on loopback, for tests: it speaks the protocol of the public one as far as `kernels`, `huggingface_hub`
and twinkle use it, keeps a log of everything asked, and misbehaves on request (faults.py).

As a program it serves a folder, ROOT/<organization>/<name>/{branches,tags}/<branch or tag>/…, and prints its endpoint:

    python tests/hub/server.py --root DIR [--port 0]
"""

import argparse
import fnmatch
import gzip
import json
import pathlib
import re
import socket
import ssl
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from faults import Fault, Rule  # noqa: E402
from repository import Commit, File, Repository, read_folder  # noqa: E402
from wire import Entry, Host, Request, Response  # noqa: E402


def quote(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def error(status: int, code: str, message: str, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, {"X-Error-Code": code, "X-Error-Message": message, "Content-Type": "application/json",
                             **named}, json.dumps({"error": message}).encode())


def in_json(value, **headers: str) -> Response:
    return Response(200, {"Content-Type": "application/json; charset=utf-8", **headers}, json.dumps(value).encode())


def content(request: Request, file: File, etag: str, headers: dict[str, str]) -> Response:
    """A file, the requested range of it, or that the client has it already."""
    headers = {"ETag": f'"{etag}"', "Accept-Ranges": "bytes", "Content-Type": "application/octet-stream", **headers}
    if f'"{etag}"' in request.headers.get("if-none-match", ""):
        return Response(304, headers)
    asked = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("range", ""))
    if request.headers.get("if-range", f'"{etag}"') != f'"{etag}"':
        asked = None
    if asked is None or not any(asked.groups()):
        return Response(200, headers, file.part(0, file.size), blob=file.etag)
    first, last = asked.groups()
    start, end = (int(first), int(last or file.size - 1) + 1) if first else (file.size - int(last), file.size)
    start, end = max(start, 0), min(end, file.size)
    if start >= end:
        return Response(416, {**headers, "Content-Range": f"bytes */{file.size}"})
    return Response(206, {**headers, "Content-Range": f"bytes {start}-{end - 1}/{file.size}"}, file.part(start, end),
                    blob=file.etag)


class Hub:
    """Two hosts: the Hub itself, and the one that large files are redirected to ("files")."""

    def __init__(self, port: int = 0, tls: ssl.SSLContext | None = None, host: type[Host] = Host) -> None:
        self.repositories: dict[str, Repository] = {}
        self.trusted: dict[str, bool] = {}  # organizations
        self.tokens: dict[str, set[str]] = {}  # token → repositories that it opens; "*" all
        self.page_size = 1000
        self.redirects_plain_files = False  # to a relative location, as the public Hub does
        self.absolute_moves = False  # whether moved repositories are redirected to an absolute location
        self.compresses = False  # gzip for those who accept it
        self.rules: list[Rule] = []
        self.log: list[Entry] = []
        self.signature = "5ecre7"  # what a location at the second host must carry
        self.hub = host("hub", self.answer, self.log, port=port, tls=tls)
        self.files = host("files", self.answer, self.log, tls=tls)

    # --- what there is ----------------------------------------------------------------------------

    @property
    def endpoint(self) -> str:
        return self.hub.origin

    def add(self, repository: Repository | str, trusted: bool = True) -> Repository:
        if isinstance(repository, str):
            repository = Repository(repository)
        self.repositories[repository.id] = repository
        self.trusted.setdefault(repository.id.partition("/")[0], trusted)
        return repository

    def fault(self, pattern: str, fault: Fault, **where) -> Rule:
        rule = Rule(pattern, fault, **where)
        self.rules.append(rule)
        return rule

    def heal(self) -> None:
        self.rules.clear()

    # --- what was asked ---------------------------------------------------------------------------

    def forget(self) -> None:
        self.log.clear()

    def requests(self, pattern: str = "*", method: str | None = None, host: str | None = None) -> list[Entry]:
        return [entry for entry in list(self.log)
                if fnmatch.fnmatchcase(entry.path, pattern) and method in (None, entry.method)
                and host in (None, entry.host)]

    def settle(self) -> None:
        """Waits until all is over that clients, which have ended, have asked for."""
        deadline = time.monotonic() + 10
        for host in (self.hub, self.files):
            with socket.create_connection((host.address, host.port)) as last:  # those before it are accepted first
                last.sendall(b"GET /nothing HTTP/1.1\r\nHost: hub\r\n\r\n")
                last.recv(1)
        while (self.hub.connections or self.files.connections) and time.monotonic() < deadline:
            time.sleep(0.002)

    def served(self) -> dict[str, int]:
        """Bytes of each blob that were sent."""
        deadline = time.monotonic() + 2  # a client may have read everything before the count is made
        while not all(entry.done for entry in list(self.log)) and time.monotonic() < deadline:
            time.sleep(0.002)
        result: dict[str, int] = {}
        for entry in list(self.log):
            if entry.blob and entry.sent:
                result[entry.blob] = result.get(entry.blob, 0) + entry.sent
        return result

    def close(self) -> None:
        self.hub.close()
        self.files.close()

    # --- answers ----------------------------------------------------------------------------------

    def answer(self, request: Request) -> Response:
        if request.authority == f"{self.files.address}:{self.files.port}":
            request.host = "files"
        faults = [rule.fault for rule in list(self.rules) if rule.applies(request)]
        for fault in faults:
            if fault.ask:
                fault.ask(request)
        if request.method not in ("GET", "HEAD"):
            response = Response(405)
        else:
            response = self.large_file(request) if request.host == "files" else self.route(request)
        if self.compresses and "gzip" in request.headers.get("accept-encoding", ""):
            self.compress(response)
        for fault in faults:
            if fault.answer:
                response = fault.answer(request, response) or response
        return response

    @staticmethod
    def compress(response: Response) -> None:
        if response.status == 200 and isinstance(response.body, bytes):
            response.body = iter([gzip.compress(response.body, 1)])
            response.headers["Content-Encoding"] = "gzip"

    def large_file(self, request: Request) -> Response:
        """The second host: it knows blobs and signatures of locations, no repositories and no tokens."""
        match request.segments:
            case ["repos", organization, name, sha256] if request.query.get("Signature") == self.signature:
                file = self.large_files(f"{organization}/{name}").get(sha256)
                if file is not None:
                    # Object stores have an ETag of their own, that says nothing of the content.
                    return content(request, file, f"{sha256[:32]}-3", {"Server": "files"})
                return Response(404)
        return Response(403, {"Content-Type": "application/xml"}, b"<Error><Code>AccessDenied</Code></Error>")

    def large_files(self, repository: str) -> dict[str, File]:
        return {file.sha256: file for commit in self.repositories[repository].commits.values()
                for file in commit.files.values() if file.lfs}

    def route(self, request: Request) -> Response:
        segments = request.segments
        match segments:
            case ["api", "organizations", name, "overview"]:
                if name not in self.trusted:
                    return error(404, "", "This organization does not exist")
                return in_json({"name": name, "fullname": name.title(), "avatarUrl": "/avatar.png", "isVerified": True,
                                "trustedKernelPublisher": self.trusted[name]})
            case ["api", "resolve-cache", "kernels", organization, name, commit, *path]:
                return self.with_repository(request, f"{organization}/{name}", lambda repository: self.plain_file(
                    repository.commits[commit], "/".join(path), request))
            case ["api", "kernels", organization, name, *rest]:
                return self.with_repository(request, f"{organization}/{name}",
                                            lambda repository: self.api(request, repository, rest))
            case ["kernels", organization, name, "resolve", revision, *path]:
                return self.with_repository(request, f"{organization}/{name}",
                                            lambda repository: self.resolve(request, repository, revision, "/".join(path)))
        return error(404, "", "Sorry, we can't find the page you are looking for.")

    def opens(self, request: Request, repository: str) -> bool:
        return bool(self.tokens.get(request.token or "", set()) & {repository, "*"})

    def with_repository(self, request: Request, name: str, then) -> Response:
        if request.token and self.tokens and request.token not in self.tokens:
            return error(401, "", "Invalid credentials in Authorization header")
        repository = self.repositories.get(name)
        if repository is None or (repository.private and not self.opens(request, name)):
            if request.token:
                return error(404, "RepoNotFound", "Repository not found")
            return error(401, "RepoNotFound", "Invalid username or password.")
        if repository.moved_to:
            location = request.target.replace(f"/{name}", f"/{repository.moved_to}", 1)
            return Response(307, {"Location": (self.endpoint if self.absolute_moves else "") + location},
                            b"Temporary Redirect. Redirecting to " + location.encode())
        return then(repository)

    def api(self, request: Request, repository: Repository, rest: list[str]) -> Response:
        match rest:
            case []:
                return self.information(repository, "main")
            case ["revision", revision]:
                return self.information(repository, revision)
            case ["refs"]:
                return in_json(repository.refs())
            case ["tree", revision, *path]:
                commit = repository.find(revision)
                if commit is None:
                    return self.no_revision(revision)
                return self.tree(request, commit, "/".join(path))
        return error(404, "", "Sorry, we can't find the page you are looking for.")

    @staticmethod
    def no_revision(revision: str) -> Response:
        return error(404, "RevisionNotFound", f"Invalid rev id: {revision}")

    def information(self, repository: Repository, revision: str) -> Response:
        commit = repository.find(revision)
        if commit is None:
            return self.no_revision(revision)
        return in_json({"_id": commit.id[:24], "id": repository.id, "author": repository.id.partition("/")[0],
                        "sha": commit.id, "private": repository.private,
                        "gated": "manual" if repository.gated else False, "downloads": 0, "likes": 0,
                        "lastModified": "2025-01-01T00:00:00.000Z"})

    def tree(self, request: Request, commit: Commit, folder: str) -> Response:
        children = commit.children.get(folder)
        if children is None:
            return error(404, "EntryNotFound", f"{folder} does not exist on \"{commit.id}\"")
        if request.query.get("recursive", "").lower() in ("true", "1"):
            start = folder + "/" if folder else ""
            children = [entry for entry in commit.entries if entry["path"].startswith(start)]
        expanded = request.query.get("expand", "").lower() in ("true", "1")
        size = min(self.page_size, int(request.query.get("limit", self.page_size)), 50 if expanded else self.page_size)
        first = int(request.query.get("cursor", 0))
        page = children[first : first + size]
        if expanded:
            page = [{**entry, "lastCommit": {"id": commit.id, "title": "commit", "date": "2025-01-01T00:00:00.000Z"}}
                    for entry in page]
        headers = {}
        if first + size < len(children):
            query = urllib.parse.urlencode({**request.query, "cursor": first + size})
            headers["Link"] = f'<{self.endpoint}{request.path}?{query}>; rel="next"'
        return in_json(page, **headers)

    def resolve(self, request: Request, repository: Repository, revision: str, path: str) -> Response:
        if repository.gated and not self.opens(request, repository.id):
            return error(403 if request.token else 401, "GatedRepo",
                         f"Access to kernel {repository.id} is restricted. You must have access to it and be "
                         "authenticated to access it. Please log in.")
        commit = repository.find(revision)
        if commit is None:
            return self.no_revision(revision)
        file = commit.files.get(path)
        if file is None:
            return error(404, "EntryNotFound", "Entry not found", X_Repo_Commit=commit.id)
        linked = {"X-Repo-Commit": commit.id, "X-Linked-Size": str(file.size), "X-Linked-Etag": f'"{file.etag}"'}
        if file.lfs:
            location = (f"{self.files.origin}/repos/{repository.id}/{file.sha256}?response-content-disposition="
                        f"{quote(f'inline; filename={pathlib.PurePosixPath(path).name}')}&Signature={self.signature}")
            headers = {**linked, "Location": location, "ETag": f'"{file.etag}"'}
            if file.xet:
                headers["X-Xet-Hash"] = str(file.xet_hash)
                headers["Link"] = (f"<{self.endpoint}/api/kernels/{repository.id}/xet-read-token/{commit.id}>; "
                                   'rel="xet-auth"')
            return Response(302, headers, f"Found. Redirecting to {location}".encode())
        if self.redirects_plain_files:
            location = f"/api/resolve-cache/kernels/{repository.id}/{commit.id}/{urllib.parse.quote(path)}?etag={file.etag}"
            return Response(307, {**linked, "Location": location}, b"Temporary Redirect")
        return self.plain_file(commit, path, request)

    @staticmethod
    def plain_file(commit: Commit, path: str, request: Request) -> Response:
        name = quote(pathlib.PurePosixPath(path).name)
        file = commit.files[path]
        return content(request, file, file.etag, {"X-Repo-Commit": commit.id,
                                                  "Content-Disposition": f"inline; filename*=UTF-8''{name}"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--untrusted", action="append", default=[], metavar="ORGANIZATION")
    parser.add_argument("--log", type=pathlib.Path, help="where the requests are written at the end, as JSON lines")
    arguments = parser.parse_args()
    hub = Hub(arguments.port)
    for repository in read_folder(arguments.root):
        hub.add(repository, trusted=repository.id.partition("/")[0] not in arguments.untrusted)
    print(hub.endpoint, flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        pass
    finally:
        if arguments.log:
            arguments.log.write_text("".join(
                json.dumps({"method": e.method, "host": e.host, "target": e.target, "status": e.status, "blob": e.blob,
                            "sent": e.sent}) + "\n" for e in hub.log))


if __name__ == "__main__":
    main()
