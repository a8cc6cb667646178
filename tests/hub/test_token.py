"""The token goes to the Hub and appears nowhere else."""

import os
import pathlib
import re
import subprocess
import time

import faults
import pytest
from conftest import PROGRAM, TOKEN, Machine, environment
from repository import kernel
from wire import Host

FILES = {"library.so": b"\x7fELF" + os.urandom(2_000_000)}
COMMANDS = [
    ("lock",), ("fetch", "--all-variants"), ("fetch", "--locked"), ("fetch", "acme/private@1", "--all-variants"),
    ("verify",), ("versions", "acme/private"), ("info", "acme/private@1"), ("tree",), ("outdated",), ("env",),
    ("cache", "list"), ("cache", "verify"), ("lock", "--upgrade"), ("add", "acme/other@1"), ("remove", "acme/other"),
    ("resolve",),
    ("fetch", "acme/missing@1"), ("fetch", "acme/private@9"), ("versions", "acme/missing"),
]


@pytest.fixture(params=["variable", "file", "home"])
def holder(request, hub, machine) -> Machine:
    """A machine whose user has the token in one of the places for it."""
    for name in ("private", "other"):
        repository = hub.add(f"acme/{name}")
        repository.private = True
        repository.commit(kernel(name, files=FILES), branch="v1")
    hub.tokens[TOKEN] = {"*"}
    if request.param == "variable":
        machine.env["HF_TOKEN"] = TOKEN
    else:
        path = machine.home / "token" if request.param == "home" else machine.project.parent / "secret"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TOKEN + "\n")
        if request.param == "file":
            machine.env["HF_TOKEN_PATH"] = path
    machine.write("twinkle.toml", '[kernels]\n"acme/private" = 1\n')
    return machine


def token_files(machine: Machine) -> list[str]:
    """Files with the token in them, but for the one that the user wrote."""
    own = {machine.home / "token", machine.project.parent / "secret"}
    return [str(path) for path in machine.project.parent.rglob("*")
            if path.is_file() and path not in own and TOKEN.encode() in path.read_bytes()]


def test_nowhere_in_what_is_said_or_written(hub, holder):
    used = 0
    for command in COMMANDS:
        for options in (("-vv",), ("--json",)):
            done = holder.twinkle(*options, *command)
            assert TOKEN not in done.out + done.err, command
            assert TOKEN[3:20] not in done.out + done.err, command
    for pattern, fault in (("*", faults.status(503)), ("*/repos/*", faults.wrong_bytes()),
                           ("/api/*", faults.body(b"<html>")), ("*", faults.redirect("http://127.0.0.1:9/x"))):
        rule = hub.fault(pattern, fault, times=3)
        for options in (("-vv",), ("--json",)):
            done = holder.twinkle(*options, "fetch", "acme/other@1", "--all-variants")
            assert TOKEN not in done.out + done.err, pattern
        hub.rules.remove(rule)
    assert token_files(holder) == []
    for entry in hub.log:
        assert TOKEN not in entry.target
        if entry.host == "files":
            assert TOKEN not in str(entry.headers) and "authorization" not in entry.headers
            assert "cookie" not in entry.headers
        used += entry.headers.get("authorization") == f"Bearer {TOKEN}"
    assert used and hub.requests(host="files")


def test_not_in_the_process_list(hub, holder):
    hub.fault("*/repos/*", faults.trickle(20_000, 0.02), host="files")
    process = holder.start("-vv", "fetch", "--all-variants")
    try:
        deadline = time.monotonic() + 20
        while not hub.requests(host="files") and time.monotonic() < deadline:
            time.sleep(0.01)
        assert process.poll() is None
        seen = processes(process.pid)
        assert process.pid in seen
        for pid, (command, variables) in seen.items():
            assert TOKEN not in command
            # What the user put there stays there; nothing is added, and no child is told.
            if pid != process.pid or "HF_TOKEN" not in holder.env:
                assert TOKEN not in variables
        limits = pathlib.Path(f"/proc/{process.pid}/limits").read_text()
        assert re.search(r"Max core file size +0 ", limits), limits
    finally:
        process.kill()
        process.communicate()


def processes(root: int) -> dict[int, tuple[str, str]]:
    """The process and its descendants: command line and environment."""
    found: dict[int, tuple[str, str]] = {}
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        folder = pathlib.Path(f"/proc/{pid}")
        found[pid] = ((folder / "cmdline").read_text(), (folder / "environ").read_text())
        for task in (folder / "task").iterdir():
            waiting += map(int, (task / "children").read_text().split())
    return found


@pytest.mark.parametrize("location", ["http://localhost:{port}{path}", "http://127.0.0.2:{port}{path}",
                                      "http://127.0.0.1@127.0.0.2:{port}{path}", "//127.0.0.1:{files}{path}"])
def test_not_at_another_origin(hub, machine, location):
    """A redirect of the API to another name, address or port is another host, however it is spelled."""
    hub.add("acme/norm").commit(kernel("norm"), branch="v1")
    hub.tokens[TOKEN] = {"*"}
    path = "/api/kernels/acme/norm/refs"
    elsewhere = Host("elsewhere", hub.answer, hub.log, "127.0.0.2", hub.hub.port)
    hub.fault("*/re[fv]*", faults.redirect(location.format(port=hub.hub.port, files=hub.files.port, path=path)),
              times=1, host="hub")
    machine.env["HF_TOKEN"] = TOKEN
    machine.twinkle("fetch", "acme/norm@1", "--all-variants", timeout=90)
    elsewhere.close()
    redirected = [entry for entry in hub.log if f"127.0.0.1:{hub.hub.port}" != entry.headers.get("host")]
    assert redirected
    assert not [entry for entry in redirected if "authorization" in entry.headers]


def test_not_again_after_another_host(hub, machine):
    """A host that sends back to the Hub could choose what is asked there with the token."""
    repository = hub.add("acme/norm")
    repository.commit(kernel("norm"), branch="v1")
    hub.tokens[TOKEN] = {"*"}
    hub.fault("/api/kernels/acme/norm/re[fv]*", faults.redirect(f"{hub.files.origin}/back"), times=1, host="hub")
    hub.fault("/back", faults.redirect(f"{hub.endpoint}/api/kernels/acme/norm/refs?again"), host="files")
    machine.env["HF_TOKEN"] = TOKEN
    machine.twinkle("fetch", "acme/norm@1", "--all-variants")
    again = [entry for entry in hub.log if entry.target.endswith("?again") or entry.host == "files"]
    assert len(again) >= 2
    assert not [entry for entry in again if "authorization" in entry.headers]


@pytest.mark.parametrize("proxied", [False, True])
def test_not_to_another_machine_without_tls(hub, machine, proxied):
    """The test Hub is the proxy to a host that is none, so that what would be sent can be seen."""
    hub.add("acme/norm").commit(kernel("norm"), branch="v1")
    hub.tokens[TOKEN] = {"*"}
    machine.env.update(HF_ENDPOINT="http://hub.invalid", HF_TOKEN=TOKEN,
                       http_proxy=f"http://127.0.0.1:{hub.hub.port}")
    if proxied:  # to this machine, but by another one
        machine.env.update(HF_ENDPOINT="http://127.0.0.1:8", http_proxy="http://proxy.invalid:3128")
    for command in (("fetch", "acme/norm@1", "--all-variants"), ("versions", "acme/norm"), ("info", "acme/norm@1")):
        done = machine.twinkle(*command)
        assert done.code == 6, done
        said = " ".join(done.err.split())
        assert "refused to send the token without encryption" in said and "TWINKLE_TOKEN_OVER_HTTP=1" in said, done
    assert not hub.log
    assert machine.twinkle("cache", "list").code == 0  # asks nobody
    if proxied:
        return
    done = machine.twinkle("fetch", "acme/norm@1", "--all-variants", env={"HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"})
    assert done.code == 0 and not [entry for entry in hub.log if "authorization" in entry.headers], done
    hub.forget()
    done = machine.twinkle("versions", "acme/norm", env={"TWINKLE_TOKEN_OVER_HTTP": "1"})
    assert done.code in (0, 3) and [entry for entry in hub.log if "authorization" in entry.headers], done


def test_left_out_when_the_user_says_so(hub, machine):
    hub.add("acme/norm").commit(kernel("norm"), branch="v1")
    machine.env.update(HF_TOKEN=TOKEN, HF_HUB_DISABLE_IMPLICIT_TOKEN="1")
    assert machine.twinkle("fetch", "acme/norm@1", "--all-variants").code == 0
    assert not [entry for entry in hub.log if "authorization" in entry.headers]


def test_user_agent(hub, machine):
    hub.add("acme/norm").commit(kernel("norm"), branch="v1")
    assert machine.twinkle("fetch", "acme/norm@1", "--all-variants").code == 0
    agents = {entry.headers.get("user-agent", "") for entry in hub.log if entry.host == "hub"}
    assert all(agent.startswith("twinkle/") for agent in agents), agents
    hub.forget()
    assert machine.twinkle("versions", "acme/norm", env={"HF_HUB_DISABLE_TELEMETRY": "1"}).code in (0, 3)
    assert hub.log and not [entry for entry in hub.log if entry.headers.get("user-agent")]


def test_core_file_has_no_token(hub, holder, tmp_path):
    """Where the system writes core files into the working folder, a crash leaves none with the token."""
    hub.fault("/api/*", faults.stall(0))
    process = subprocess.Popen(["sh", "-c", "ulimit -c unlimited; exec \"$0\" fetch", str(PROGRAM)], cwd=holder.project,
                               env=environment(**holder.env), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 10
    while not hub.log and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(6)
    assert process.wait(timeout=20) == -6
    assert token_files(holder) == []
