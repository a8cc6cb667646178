"""Every fault of the test Hub against `twinkle fetch`: the exit code as documented, a message that a person can use,
nothing wrong in the cache, and all well once the fault is over.

The cases run at the same time, each with a Hub and a cache of its own, since most of them wait for something."""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import resource
import socket
import zlib
from collections.abc import Callable

import faults
import peak
import pytest
from conftest import PROGRAM, TOKEN, Finished, Machine, all_files
from repository import Repository, kernel
from server import Hub
from wire import Entry, Response

LIBRARY = b"\x7fELF" + os.urandom(3_000_000)
FILES = {"library.so": LIBRARY, "extra.py": b"# extra\n" * 4000}
REFS, TREE = "/api/kernels/acme/norm/re[fv]*", "/api/kernels/acme/norm/tree/*"
STATUS = "/kernels/*/kernel-status.toml"
PYTHON, SO = "/kernels/*/extra.py", "*/repos/*"
REFUSED = {4, 5}  # an answer that cannot be: not what was asked for, or no Hub
ANY = {0, 4, 5}


@dataclasses.dataclass
class Case:
    name: str
    exits: set[int]
    setup: Callable[[Hub], object]
    env: dict = dataclasses.field(default_factory=dict)
    command: tuple = ("fetch", "acme/norm@1", "--all-variants")
    says: tuple[str, ...] = ()  # words of the message
    check: Callable[["Outcome"], None] | None = None
    heals: bool = True  # afterwards the same command succeeds


@dataclasses.dataclass
class Outcome:
    case: Case
    done: Finished
    again: Finished | None  # once the fault is over
    machine: Machine
    repository: Repository
    log: list[Entry]
    peak: int  # bytes
    wrong: list[str]  # files of the cache that are not what they should be, after the fault
    missing: list[str]  # files that are not there after the second run
    litter: list[str]


def entry(path: str, size: int = 5, kind: str = "file") -> dict:
    return {"type": kind, "oid": "a" * 40, "size": size, "path": path}


def listed(*more: dict) -> faults.Fault:
    """The right tree, and more."""
    def answer(_, response):
        if response.status == 200:
            response.body = json.dumps(json.loads(response.body) + list(more)).encode()
    return faults.Fault(answer)


def many(hub: Hub, *rules) -> None:
    for pattern, fault, options in rules:
        hub.fault(pattern, fault, **options)


def at(pattern: str, fault: faults.Fault, **options) -> Callable[[Hub], object]:
    return lambda hub: hub.fault(pattern, fault, **options)


def closed_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


def resumes(outcome: Outcome) -> None:
    """What had arrived before the fault was not asked for again."""
    ranges = [e.headers["range"] for e in outcome.log if e.host == "files" and "range" in e.headers]
    assert any(not wanted.startswith("bytes=0-") for wanted in ranges), ranges


def flat(outcome: Outcome) -> None:
    assert outcome.peak < 64 << 20, outcome.peak


def nobody_else(outcome: Outcome) -> None:
    assert not [e for e in outcome.log if e.host == "files" and "authorization" in e.headers]


def zipped(start: bytes, repeated: bytes, total: int) -> faults.Fault:
    """A small answer that is large when it is unpacked."""
    def answer(request, _):
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return faults.endless(start, repeated, total).answer(request, None)

        def blocks():
            packer = zlib.compressobj(9, wbits=31)
            yield packer.compress(start)
            block = repeated * (1 << 16)
            for _ in range(total // len(block)):
                yield packer.compress(block)
        return Response(200, {"Content-Type": "application/json", "Content-Encoding": "gzip"},
                        (block for block in blocks() if block))
    return faults.Fault(answer)


def page_to_another_host(hub: Hub) -> None:
    hub.page_size = 3
    hub.fault(TREE, faults.next_page(f"{hub.files.origin}/api/kernels/acme/norm/tree/next"))


def private(hub: Hub) -> None:
    hub.repositories["acme/norm"].private = True
    hub.tokens[TOKEN] = {"acme/norm"}


def gated(hub: Hub) -> None:
    hub.repositories["acme/norm"].gated = True
    hub.tokens[TOKEN] = {"acme/norm"}


def untrusted(hub: Hub) -> None:
    hub.trusted["acme"] = False


def nothing(hub: Hub) -> None:
    pass


BAD_PATHS = {
    "parent": "build/torch-universal/../../../../../evil.py", "absolute": "/tmp/evil.py", "backslash": "build\\evil.py",
    "nul": "build/evil\0.py", "dot": "build/./evil.py", "empty part": "build//evil.py", "newline": "build/a\nb.py",
    "parent alone": "..", "empty": "", "too long": "build/" + "x" * 5000}

CASES = [
    # --- what passes -------------------------------------------------------------------------------
    Case("503 twice for the refs", {0}, at(REFS, faults.status(503), times=2)),
    Case("503 for a file", {0}, at(PYTHON, faults.status(503), times=2)),
    Case("503 at the second host", {0}, at(SO, faults.status(503), times=1, host="files")),
    Case("500 with a page", {0}, at(TREE, faults.status(500, b"<html>oops</html>"), times=1)),
    Case("429 with Retry-After", {0}, at(PYTHON, faults.retry_after(1), times=1)),
    Case("429 with ratelimit", {0}, at(TREE, faults.rate_limit(1), times=1)),
    Case("429 with a broken Retry-After", {0}, at(TREE, faults.retry_after("soon"), times=1)),
    Case("reset before the answer", {0}, at(REFS, faults.cut_head(0), times=1)),
    Case("reset in the headers", {0}, at(TREE, faults.cut_head(40), times=1)),
    Case("cut once", {0}, at(SO, faults.cut(1_000_000), times=1, host="files"), check=resumes),
    Case("cut four times", {0}, at(SO, faults.cut(500_000), times=4, host="files"), check=resumes),
    Case("cut in a small file", {0}, at(PYTHON, faults.cut(1000), times=2)),
    Case("Range ignored after a cut", {0}, lambda hub: many(
        hub, (SO, faults.cut(1_000_000), {"times": 1, "host": "files"}),
        (SO, faults.ignored_range(), {"host": "files"}))),
    Case("trickle", {0}, at(PYTHON, faults.trickle(4000, 0.05))),
    Case("stalls once", {0}, at(SO, faults.stall(1_000_000), times=1, host="files"),
         env={"HF_HUB_DOWNLOAD_TIMEOUT": "1"}, check=resumes),
    Case("a signature that is over", {0}, at(SO, faults.status(403), times=1, host="files")),
    Case("plain files are redirected", {0}, lambda hub: setattr(hub, "redirects_plain_files", True)),
    Case("compressed answers", {0}, lambda hub: setattr(hub, "compresses", True)),
    Case("many pages", {0}, lambda hub: setattr(hub, "page_size", 2)),

    # --- what cannot be helped ---------------------------------------------------------------------
    Case("503 for ever", {5}, at(REFS, faults.status(503)), says=("503",)),
    Case("503 for a file for ever", {5}, at(PYTHON, faults.status(503)), says=("503", "extra.py")),
    Case("429 for hours", {5}, at(TREE, faults.retry_after(86400)), says=("429",)),
    Case("no connection", {5}, nothing, env={"HF_ENDPOINT": f"http://127.0.0.1:{closed_port()}"}, heals=False),
    Case("no such host", {5}, nothing, env={"HF_ENDPOINT": "http://hub.invalid"}, heals=False,
         says=("hub.invalid",)),
    Case("no HTTP", {5}, at("*", faults.raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"))),
    Case("reset every time", {5}, at("/api/*", faults.cut_head(0))),
    Case("cut every time", {5}, at(SO, faults.cut(0), host="files")),
    Case("second host gone", {5}, at("/kernels/*.so", faults.redirect(f"http://127.0.0.1:{closed_port()}/x", 302))),
    Case("second host refuses", {5}, at(SO, faults.status(403), host="files"), says=("403",)),
    Case("stalls for ever", {5}, at(PYTHON, faults.stall(10)), env={"HF_HUB_DOWNLOAD_TIMEOUT": "1"}),
    Case("stalls in the API", {5}, at(REFS, faults.stall(3)), env={"HF_HUB_ETAG_TIMEOUT": "1"}),
    Case("redirects for ever", {5}, at(PYTHON, faults.redirect_loop()), says=("redirect",)),
    Case("API redirects for ever", {5}, at(REFS, faults.redirect_loop()), says=("redirect",)),
    Case("redirect to a file", {5}, at(PYTHON, faults.redirect("file:///etc/passwd"))),
    Case("redirect to ftp", {5}, at(PYTHON, faults.redirect("ftp://127.0.0.1/x"))),
    Case("redirect to nowhere", {5}, at(PYTHON, faults.redirect("http://"))),
    Case("API redirects to a file", {5}, at(TREE, faults.redirect("file:///etc/passwd"))),
    Case("offline", {5}, nothing, env={"HF_HUB_OFFLINE": "1"}, says=("offline",), heals=False),

    # --- wrong contents ----------------------------------------------------------------------------
    Case("wrong bytes", {4}, at(SO, faults.wrong_bytes(2_000_000), host="files"), says=("library.so",)),
    Case("wrong bytes in a small file", {4}, at(PYTHON, faults.wrong_bytes()), says=("extra.py",)),
    Case("wrong bytes once", {0, 4}, at(SO, faults.wrong_bytes(), times=1, host="files")),
    Case("Content-Length too long", REFUSED, at(PYTHON, faults.wrong_length(100))),
    Case("Content-Length too short", REFUSED, at(PYTHON, faults.wrong_length(-100))),
    Case("Content-Length too long once", {0}, at(PYTHON, faults.wrong_length(100), times=1)),
    Case("more than the tree says", REFUSED, at(PYTHON, faults.body(b"x" * 200_000))),
    Case("a file without an end", REFUSED, at(PYTHON, faults.endless(b"x", b"x")), check=flat),
    Case("an empty file", REFUSED, at(PYTHON, faults.body(b""))),

    # --- an API that says nonsense -----------------------------------------------------------------
    Case("a page instead of refs", REFUSED, at(REFS, faults.body(b"<html>Please log in</html>"))),
    Case("a page instead of the tree", REFUSED, at(TREE, faults.body(b"<html>Please log in</html>"))),
    Case("refs of another shape", REFUSED, at(REFS, faults.document('{"branches": {"v1": "x"}}'))),
    Case("a commit that is none", REFUSED, at(REFS, faults.document(
        '{"branches": [{"name": "v1", "ref": "refs/heads/v1", "targetCommit": "../../etc"}], "converts": [], '
        '"tags": []}'))),
    Case("a tree of another shape", REFUSED, at(TREE, faults.document('{"error": "no"}'))),
    Case("JSON without an end", REFUSED, at(TREE, faults.endless(b"[", b'{"type": "file"}, ')), check=flat),
    Case("refs without an end", REFUSED, at(REFS, faults.endless(b'{"branches": [', b"[],")), check=flat),
    Case("deep JSON", REFUSED, at(TREE, faults.document("[" * 200_000 + "]" * 200_000)), check=flat),
    Case("3 GB of JSON, compressed", REFUSED, at(TREE, zipped(b"[", b'{"type": "file"}, ', 3 << 30)), check=flat),
    Case("3 GB of JSON in one string", REFUSED, at(TREE, faults.endless(b'[{"type": "', b"file", 3 << 30)), check=flat),
    Case("a status without an end", REFUSED, at(STATUS, faults.endless(b"[a]\n", b"k = 1\n")), check=flat),
    Case("metadata without an end", REFUSED, at("/kernels/*/metadata.json", faults.endless(b'{"name": "', b"x")),
         check=flat),
    Case("a publisher without an end", REFUSED, at("/api/organizations/*", faults.endless(b'{"name": "', b"x")),
         check=flat),
    Case("an error page without an end", {3}, at(REFS, faults.Fault(
        lambda request, response: dataclasses.replace(
            faults.endless(b"<", b"x").answer(request, response), status=404))), check=flat),
    Case("endless pages", REFUSED, at(TREE, faults.endless_pages()), check=flat),
    Case("a page of itself", REFUSED, at(TREE, faults.Fault(lambda request, response: response.headers.update(
        {"Link": f'<{request.target}>; rel="next"'})))),
    Case("a page at another host", REFUSED, page_to_another_host, env={"HF_TOKEN": TOKEN}, check=nobody_else),
    Case("a page in a file", REFUSED, at(TREE, faults.next_page("file:///etc/passwd"))),
    *(Case(f"tree: {name}", REFUSED, at(TREE, listed(entry(path)))) for name, path in BAD_PATHS.items()),
    Case("tree: twice the same path", REFUSED, at(TREE, listed(entry("build/torch-universal/extra.py")))),
    Case("tree: a file that is a folder", REFUSED, at(TREE, listed(entry("build/torch-universal/extra.py/x.py")))),
    Case("tree: a negative size", REFUSED, at(TREE, listed(entry("build/torch-universal/x.py", size=-1)))),
    Case("tree: an oid with a path", REFUSED, at(TREE, listed(
        {**entry("build/torch-universal/x.py"), "oid": "../../../../evil"}))),
    Case("tree: an LFS oid with a path", REFUSED, at(TREE, listed(
        {**entry("build/torch-universal/x.py"), "lfs": {"oid": "../../evil", "size": 5, "pointerSize": 100}}))),
    # twinkle knows hash and commit already, and does not need to ask for them again.
    Case("no ETag", ANY, at("/kernels/*", faults.header("ETag", None))),
    Case("an ETag with a path", ANY, lambda hub: many(
        hub, ("/kernels/*", faults.header("ETag", '"../../../x"'), {}),
        ("/kernels/*", faults.header("X-Linked-Etag", '"../../../x"'), {}))),
    Case("no commit", ANY, at("/kernels/*", faults.header("X-Repo-Commit", None))),
    Case("a commit with a path", ANY, at("/kernels/*", faults.header("X-Repo-Commit", "../../../x"))),

    # --- a Hub that refuses ------------------------------------------------------------------------
    Case("missing repository", {3}, nothing, command=("fetch", "acme/missing@1"), says=("acme/missing",),
         heals=False),
    Case("missing version", {3}, nothing, command=("fetch", "acme/norm@7"), says=("acme/norm", "1"), heals=False),
    Case("missing revision", {3}, nothing, command=("fetch", "acme/norm@nowhere"), says=("nowhere",), heals=False),
    Case("private", {3, 5}, private, says=("acme/norm", "token"), heals=False),
    Case("private with the token", {0}, private, env={"HF_TOKEN": TOKEN}),
    Case("gated", {5}, gated, says=("acme/norm", "access"), heals=False),
    Case("gated with the token", {0}, gated, env={"HF_TOKEN": TOKEN}),
    Case("a token that is wrong", {5}, private, env={"HF_TOKEN": "hf_wrong"}, says=("token",), heals=False),
    Case("untrusted", {6}, untrusted, says=("acme/norm", "--trust"), heals=False),
    Case("trusted this once", {0}, untrusted, command=("fetch", "acme/norm@1", "--all-variants", "--trust",
                                                       "acme/norm")),
    Case("no build for the target", {3}, nothing, heals=False, says=("torch29-cxx11-cu130",),
         command=("fetch", "acme/picky@1", "--target", "torch=2.11,backend=cpu")),
]


def run(case: Case, folder: pathlib.Path, launcher: pathlib.Path) -> Outcome:
    hub = Hub()
    try:
        repository = hub.add("acme/norm")
        commit = repository.commit(kernel("norm", ["torch-universal"], files=FILES), branch="v1")
        hub.add("acme/picky").commit(kernel("picky", ["torch29-cxx11-cu130-x86_64-linux"]), branch="v1")
        machine = Machine(folder, hub.endpoint)
        case.setup(hub)
        done, peak_memory = measured(machine, case, launcher)
        wrong = wrong_files(machine, commit)
        log = list(hub.log)
        again = None
        if case.heals:
            hub.heal()
            hub.forget()
            again = machine.twinkle(*case.command, env=case.env if case.exits == {0} else {})
        there = all_files(machine.snapshot("acme/norm", commit.id)) if case.heals else {}
        missing = [path for path in commit.files if path.startswith("build/") and path not in there]
        return Outcome(case, done, again, machine, repository, log, peak_memory, wrong, missing, litter(machine))
    finally:
        hub.close()


def measured(machine: Machine, case: Case, launcher: pathlib.Path) -> tuple[Finished, int]:
    """Runs the command, and how much memory it used at most."""
    usage = machine.project / "usage"
    done = machine.run([launcher, usage, PROGRAM, "--json", *case.command], env=case.env, timeout=120,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30)))
    peak_memory = peak.read(usage).peak
    usage.unlink()
    return done, peak_memory


def wrong_files(machine: Machine, commit) -> list[str]:
    """Files in a snapshot, and blobs, that are not what their names say; and whatever is outside of the cache."""
    wrong = []
    for path, content in all_files(machine.store("acme/norm") / "snapshots").items():
        revision, _, name = path.partition("/")
        if revision != commit.id or name not in commit.files or commit.files[name].content != content:
            wrong.append(path)
    known = {file.etag: file.content for file in commit.files.values()}
    for path in (machine.store("acme/norm") / "blobs").glob("*"):
        if ".incomplete" not in path.name and known.get(path.name) != path.read_bytes():
            wrong.append(f"blobs/{path.name}")
    top = machine.project.parent
    outside = [path for path in top.rglob("*") if path.is_file() and machine.cache not in path.parents]
    return wrong + [str(path.relative_to(top)) for path in outside] + [
        str(path) for path in (pathlib.Path("/tmp/evil.py"),) if path.exists()]


def litter(machine: Machine) -> list[str]:
    return [str(path.relative_to(machine.cache)) for path in machine.cache.rglob("*")
            if "incomplete" in path.name or path.suffix in (".tmp", ".part") or path.is_symlink() and not path.exists()]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    launcher = peak.build(folder)
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        yield {case.name: pool.submit(run, case, folder / str(i), launcher) for i, case in enumerate(CASES)}


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_fault(outcomes, name):
    outcome = outcomes[name].result(timeout=240)
    case, done = outcome.case, outcome.done
    assert done.code in case.exits, done
    assert outcome.wrong == []
    if done.code:
        check_message(case, done)
    else:
        assert done.json["schema"] == "twinkle.fetch/1"
    if case.check:
        case.check(outcome)
    if case.heals:
        assert outcome.again.code == 0, outcome.again
        assert outcome.missing == []
        assert outcome.litter == []


def check_message(case: Case, done: Finished) -> None:
    assert done.out == ""
    error = done.error
    assert error["what"] and (error["why"] or error["where"]), error
    whole = " ".join(str(value) for value in error.values())
    assert error["hint"] or case.exits & {4}, error
    for word in case.says:
        assert word.lower() in whole.lower(), error
    for word in ("curl", "nlohmann", "json.exception", "std::", "5ecre7", TOKEN, "terminate"):
        assert word not in done.err, error
