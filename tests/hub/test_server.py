"""The test Hub is right: the real Python clients work against it, and it says what they asked."""

import hashlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import urllib.parse

import pytest
from conftest import ROOT, TOKEN, Machine, all_files
from faults import cut, ignored_range, rate_limit, retry_after, status, wrong_bytes, wrong_length
from repository import File, Repository, kernel

VARIANTS = ["torch-universal", "torch-cpu", "torch210-cxx11-cu130-x86_64-linux"]


@pytest.fixture
def norm(hub) -> Repository:
    """Two versions, a tag, and a dependency."""
    hub.add("acme/base").commit(kernel("base"), branch="v1")
    repository = hub.add("acme/norm")
    repository.commit(kernel("norm", VARIANTS), branch="v1", tag="v0.1.0")
    repository.commit(kernel("norm", VARIANTS, version=2, depends=[("acme/base", 1)]), branch="v2")
    repository.commit({"README.md": "# Norm\n"}, branch="main")
    return repository


def ask(hub, path: str, method: str = "GET", host: str = "hub", **headers):
    port = getattr(hub, host).port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def test_ids_are_those_of_git(norm, tmp_path):
    commit = norm.find("v1")
    for path, file in commit.files.items():
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.pointer if file.lfs else file.content)
    git = ["git", "-c", "core.autocrlf=false", "-c", "core.attributesFile=/dev/null"]
    (tmp_path / ".gitattributes").rename(tmp_path / "attributes")  # no filter here
    subprocess.run([*git, "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run([*git, "add", "build"], cwd=tmp_path, check=True)
    listed = subprocess.run([*git, "ls-files", "-s"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    ids = {line.split("\t")[1]: line.split()[1] for line in listed.splitlines()}
    assert ids == {path: file.blob_id for path, file in commit.files.items() if path.startswith("build/")}
    tree = subprocess.run([*git, "write-tree", "--prefix=build/"], cwd=tmp_path, check=True, capture_output=True,
                          text=True).stdout.strip()
    assert tree == commit.folders["build"]


def test_lists_and_serves(hub, norm):
    commit = norm.find("v1")
    response, body = ask(hub, "/api/kernels/acme/norm/refs")
    assert [branch["name"] for branch in json.loads(body)["branches"]] == ["v1", "v2", "main"]
    assert json.loads(ask(hub, "/api/kernels/acme/norm/revision/refs%2Fheads%2Fv1")[1])["sha"] == commit.id
    entries = json.loads(ask(hub, "/api/kernels/acme/norm/tree/v1/build")[1])
    assert [entry["path"] for entry in entries] == sorted(f"build/{name}" for name in VARIANTS)

    plain = "/kernels/acme/norm/resolve/v1/build/torch-cpu/__init__.py"
    response, body = ask(hub, plain)
    file = commit.files["build/torch-cpu/__init__.py"]
    assert (response.status, body, response.headers["ETag"]) == (200, file.content, f'"{file.blob_id}"')
    assert response.headers["X-Repo-Commit"] == commit.id
    response, body = ask(hub, plain, Range="bytes=3-5")
    assert (response.status, body) == (206, file.content[3:6])
    assert response.headers["Content-Range"] == f"bytes 3-5/{file.size}"
    assert ask(hub, plain, Range=f"bytes={file.size}-")[0].status == 416
    assert ask(hub, plain, Range="bytes=3-5", If_Range='"another"')[1] == file.content
    assert ask(hub, plain, If_None_Match=f'"{file.blob_id}"')[0].status == 304

    library = "build/torch-cpu/_norm_1.abi3.so"
    response, body = ask(hub, f"/kernels/acme/norm/resolve/{commit.id}/{library}", "HEAD")
    file = commit.files[library]
    assert (response.status, body, response.headers["X-Linked-Etag"]) == (302, b"", f'"{file.sha256}"')
    assert response.headers["X-Linked-Size"] == str(file.size)
    location = urllib.parse.urlsplit(response.headers["Location"])
    assert location.port == hub.files.port
    response, body = ask(hub, f"{location.path}?{location.query}", host="files")
    assert hashlib.sha256(body).hexdigest() == file.sha256
    assert ask(hub, location.path, host="files")[0].status == 403
    assert hub.served()[file.sha256] == file.size


def test_pages_of_a_tree(hub, norm):
    hub.page_size = 4
    target, found = "/api/kernels/acme/norm/tree/v1?recursive=true", []
    while target:
        response, body = ask(hub, target)
        found += json.loads(body)
        link = response.headers.get("Link", "")
        target = link.partition(">")[0].removeprefix("<" + hub.endpoint)
    assert found == norm.find("v1").entries


@pytest.mark.parametrize(("path", "token", "expected"), [
    ("/api/kernels/acme/missing/refs", None, (401, "RepoNotFound")),
    ("/api/kernels/acme/missing/refs", TOKEN, (404, "RepoNotFound")),
    ("/api/kernels/acme/private/refs", None, (401, "RepoNotFound")),
    ("/api/kernels/acme/private/refs", TOKEN, (200, None)),
    ("/api/kernels/acme/norm/refs", "hf_wrong", (401, "")),
    ("/api/kernels/acme/norm/revision/v9", None, (404, "RevisionNotFound")),
    ("/api/kernels/acme/norm/tree/v1/nowhere", None, (404, "EntryNotFound")),
    ("/kernels/acme/norm/resolve/v1/nothing", None, (404, "EntryNotFound")),
    ("/api/kernels/acme/gated/tree/v1", None, (200, None)),
    ("/kernels/acme/gated/resolve/v1/README.md", None, (401, "GatedRepo")),
    ("/kernels/acme/gated/resolve/v1/README.md", TOKEN, (403, "GatedRepo")),
])
def test_refusals(hub, norm, path, token, expected):
    for name in ("private", "gated"):
        repository = hub.add(Repository(f"acme/{name}", **{name: True}))
        repository.commit(kernel(name), branch="v1")
    hub.tokens[TOKEN] = {"acme/private"}
    response, _ = ask(hub, path, **({"Authorization": f"Bearer {token}"} if token else {}))
    assert (response.status, response.headers["X-Error-Code"]) == expected


def test_moved_repositories(hub, norm):
    hub.add(Repository("old/norm", moved_to="acme/norm"))
    response, _ = ask(hub, "/api/kernels/old/norm/refs")
    assert (response.status, response.headers["Location"]) == (307, "/api/kernels/acme/norm/refs")
    hub.absolute_moves = True
    response, _ = ask(hub, "/api/kernels/old/norm/refs")
    assert response.headers["Location"] == f"{hub.endpoint}/api/kernels/acme/norm/refs"


def test_faults(hub, norm):
    path = "/kernels/acme/norm/resolve/v1/build/torch-cpu/__init__.py"
    right = norm.find("v1").files["build/torch-cpu/__init__.py"].content
    hub.fault("*/__init__.py", status(503), times=2, skip=1)
    assert [ask(hub, path)[0].status for _ in range(4)] == [200, 503, 503, 200]
    hub.fault("*/__init__.py", ignored_range(), times=1)
    assert ask(hub, path, Range="bytes=1-")[1] == right
    hub.fault("*/__init__.py", wrong_bytes(), times=1)
    wrong = ask(hub, path)[1]
    assert len(wrong) == len(right) and wrong != right
    hub.fault("*/__init__.py", cut(5), times=1)
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        ask(hub, path)
    hub.fault("*/__init__.py", wrong_length(7), times=1)
    with pytest.raises(http.client.IncompleteRead):
        ask(hub, path)
    hub.fault("*/__init__.py", retry_after(3), times=1)
    assert ask(hub, path)[0].headers["Retry-After"] == "3"
    hub.fault("*/__init__.py", rate_limit(3), times=1)
    assert ask(hub, path)[0].headers["RateLimit"] == '"api";r=0;t=3'
    assert ask(hub, path)[1] == right


HUB_CLIENT = """
import os, sys
from huggingface_hub import HfApi, hf_hub_download, list_repo_refs, list_repo_tree, snapshot_download
api = HfApi()
refs = list_repo_refs("acme/norm", repo_type="kernel")
assert sorted(branch.name for branch in refs.branches) == ["main", "v1", "v2"], refs
assert [tag.name for tag in refs.tags] == ["v0.1.0"], refs
tree = list(list_repo_tree("acme/norm", recursive=True, revision="v1", repo_type="kernel"))
assert any(entry.path == "build/torch-cpu/_norm_1.abi3.so" and entry.lfs for entry in tree)
assert api.get_organization_overview("acme").trustedKernelPublisher is True
"""

BOTH = """
path = hf_hub_download("acme/norm", "build/torch-cpu/_norm_1.abi3.so", repo_type="kernel", revision="v1")
print(path)
print(snapshot_download("acme/norm", repo_type="kernel", revision="v2"))
"""


def checks(commit, folder):
    assert all_files(folder) == {path: file.content for path, file in commit.files.items()}


@pytest.mark.parametrize("redirects", [False, True], ids=["plain", "redirected"])
def test_huggingface_hub(hub, norm, machine, redirects):
    hub.redirects_plain_files = hub.compresses = redirects
    hub.page_size = 7
    first = machine.python(HUB_CLIENT + BOTH)
    assert first.code == 0, first
    library, snapshot = first.out.split()
    assert snapshot == str(machine.snapshot("acme/norm", norm.branches["v2"]))
    checks(norm.find("v2"), machine.snapshot("acme/norm", norm.branches["v2"]))
    assert not any(entry.headers.get("authorization") for entry in hub.log)
    hub.forget()
    offline = machine.python(HUB_CLIENT.partition("api =")[0] + BOTH, env={"HF_HUB_OFFLINE": "1"})
    assert (offline.code, offline.out) == (0, first.out), offline
    assert not hub.log


def test_huggingface_hub_with_a_token(hub, norm, machine):
    hub.add(Repository("acme/private", private=True)).commit(kernel("private", VARIANTS), branch="v1")
    hub.tokens[TOKEN] = {"acme/private"}
    program = textwrap.dedent("""
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import RepositoryNotFoundError
        try:
            print(snapshot_download("acme/private", repo_type="kernel", revision="v1"))
        except RepositoryNotFoundError:
            print("not found")
    """)
    assert machine.python(program).out == "not found\n"
    done = machine.python(program, env={"HF_TOKEN": TOKEN})
    assert done.code == 0 and done.out.strip().endswith(hub.repositories["acme/private"].branches["v1"])
    second_host = hub.requests(host="files")
    assert second_host and not any(TOKEN in str(entry.headers) for entry in second_host)


KERNELS_CLIENT = """
from pathlib import Path
from kernels import get_kernel, get_locked_kernel, has_kernel
assert has_kernel("acme/norm", version=2) is True
kernel = get_kernel("acme/norm", version=2)
print(kernel.NAME, kernel.VERSION, get_locked_kernel("acme/norm", lockfile=Path("kernels.lock")).dependency_0.NAME)
"""

OFFLINE_CLIENT = """
from pathlib import Path
from kernels import load_kernel
kernel = load_kernel("acme/norm", lockfile=Path("kernels.lock"))
print(kernel.NAME, kernel.VERSION, kernel.dependency_0.NAME)
"""


def test_kernels(hub, machine):
    """lock, download, versions, and kernels that are loaded; then the same without the network."""
    # Files outside of build/ would make the offline part fail: a defect of the reference.
    base = hub.add("acme/base").commit(kernel("base", outside=False), branch="v1")
    norm = hub.add("acme/norm")
    norm.commit(kernel("norm", VARIANTS), branch="v1")
    second = norm.commit(kernel("norm", VARIANTS, version=2, depends=[("acme/base", 1)], outside=False), branch="v2")
    machine.write("pyproject.toml", '[tool.kernels.dependencies]\n"acme/norm" = 2\n')
    shown = machine.kernels("lock", ".", "+", "download", ".", "--all-variants", "+", "versions", "acme/norm",
                            then=KERNELS_CLIENT)
    assert shown.code == 0 and "Version 1:" in shown.out and "torch-universal" in shown.out, shown
    assert shown.out.endswith("\nnorm 2 base\n"), shown
    lock = json.loads((machine.project / "kernels.lock").read_text())
    assert [(entry["dependency"]["repo-id"], entry["lock"]["commit"]) for entry in lock] == [
        ("acme/base", base.id), ("acme/norm", second.id)]
    hub.forget()
    offline = machine.python(OFFLINE_CLIENT, env={"HF_HUB_OFFLINE": "1"})
    assert (offline.code, offline.out) == (0, "norm 2 base\n"), offline
    assert not hub.log


def test_kernels_refuses_an_untrusted_publisher(hub, machine):
    hub.add(Repository("stranger/norm"), trusted=False).commit(kernel("norm"), branch="v1")
    machine.write("pyproject.toml", '[tool.kernels.dependencies]\n"stranger/norm" = 1\n')
    done = machine.kernels("lock", ".")
    assert done.code != 0 and "not from a trusted publisher" in done.err


def test_as_a_program(hub, norm, tmp_path):
    folder = tmp_path / "served/acme/norm/branches/v1"
    for path, file in norm.find("v1").files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(file.content)
    process = subprocess.Popen([sys.executable, ROOT / "tests/hub/server.py", "--root", tmp_path / "served"],
                               stdout=subprocess.PIPE, text=True)
    try:
        machine = Machine(tmp_path / "machine", process.stdout.readline().strip())
        done = machine.python(
            "from huggingface_hub import snapshot_download; snapshot_download('acme/norm', repo_type='kernel', "
            f"revision='v1')")
        assert done.code == 0, done
        checks(norm.find("v1"), machine.snapshot("acme/norm", norm.branches["v1"]))
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def test_large_files_from_disk(hub, tmp_path):
    large = tmp_path / "large.bin"
    large.write_bytes(bytes(range(256)) * 80_000)
    commit = hub.add("acme/large").commit({"large.bin": File(large, lfs=True)}, branch="v1")
    response, _ = ask(hub, "/kernels/acme/large/resolve/v1/large.bin", "HEAD")
    location = urllib.parse.urlsplit(response.headers["Location"])
    for wanted, expected in ((None, large.read_bytes()), ("bytes=1000-1999", large.read_bytes()[1000:2000])):
        body = ask(hub, f"{location.path}?{location.query}", host="files", **({"Range": wanted} if wanted else {}))[1]
        assert body == expected
    assert hub.served() == {commit.files["large.bin"].sha256: large.stat().st_size + 1000}


def test_keeps_connections(hub, norm):
    with socket.create_connection(("127.0.0.1", hub.hub.port)) as connection:
        stream = connection.makefile("rb")
        for _ in range(3):
            connection.sendall(b"GET /api/organizations/acme/overview HTTP/1.1\r\nHost: hub\r\n\r\n")
            assert stream.readline() == b"HTTP/1.1 200 OK\r\n"
            length = 0
            while (line := stream.readline().strip()):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            assert json.loads(stream.read(length))["trustedKernelPublisher"] is True


ANOTHER_HOST = """
import http.client
from wire import Host, Response

def host():
    return Host("hub", lambda request: Response(200, {}, b"right"), [])

first = host()
number = first.listener.fileno()
first.close()
second = host()
assert second.listener.fileno() == number
print(flush=True)
input()
for _ in range(3):
    connection = http.client.HTTPConnection("127.0.0.1", second.port, timeout=10)
    connection.request("GET", "/")
    assert connection.getresponse().read() == b"right"
    connection.close()
"""


def test_an_ended_host_takes_no_connections_of_the_next():
    """A process that was stopped waits again for connections when it goes on, and by the number of the socket."""
    process = subprocess.Popen([sys.executable, "-c", ANOTHER_HOST], cwd=ROOT / "tests/hub", text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    os.kill(process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    os.kill(process.pid, signal.SIGCONT)
    output, errors = process.communicate("\n", timeout=20)
    assert (process.returncode, output, errors) == (0, "", "")
