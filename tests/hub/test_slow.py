"""A Hub that is too slow: fetch ends with a message, keeps what has arrived, and goes on from there later. A network that
is slow but honest is waited for."""

import os
import time

import faults
import pytest
from conftest import all_files
from repository import kernel

FETCH = ("fetch", "acme/norm@1", "--all-variants")
API, SMALL, LARGE = "/api/kernels/acme/norm/re[fv]*", "/kernels/*/extra.py", "*/repos/*"
# In tests a second is long.
QUICK = {"TWINKLE_LOW_SPEED_TIME": "1", "TWINKLE_LOW_SPEED_LIMIT": "20000"}


@pytest.fixture
def commit(hub):
    library = b"\x7fELF" + os.urandom(300_000)
    return hub.add("acme/norm").commit(kernel("norm", files={"library.so": library, "extra.py": b"# extra\n" * 400}),
                                       branch="v1")


def complete(machine, commit) -> bool:
    found = all_files(machine.snapshot("acme/norm", commit.id))
    return found == {path: file.content for path, file in commit.files.items() if path.startswith("build/")}


def fetch(machine, limit: float = 60, **env):
    """Within the limit: the attempts of twinkle last five seconds and what it waits in between, seven at most."""
    begun = time.monotonic()
    done = machine.twinkle(*FETCH, env={**QUICK, **env}, timeout=120)
    assert time.monotonic() - begun < limit, done
    return done


@pytest.mark.parametrize("pattern", [API, SMALL, LARGE])
@pytest.mark.parametrize("fault", [faults.slow_head(0.3), faults.trickle(1, 0.3)], ids=["headers", "body"])
def test_a_slow_answer_ends(hub, machine, commit, pattern, fault):
    rule = hub.fault(pattern, fault)
    done = fetch(machine, 30)
    assert done.code == 5 and "the Hub is too slow" in done.err, done
    assert "TWINKLE_LOW_SPEED_LIMIT" in done.err and "(tried " in " ".join(done.err.split()), done
    hub.rules.remove(rule)
    assert (done := fetch(machine)).code == 0, done
    assert complete(machine, commit)


@pytest.mark.parametrize("pause", [0, 0.3])
@pytest.mark.parametrize("pattern", [API, SMALL, LARGE])
def test_interim_answers_end(hub, machine, commit, pattern, pause):
    hub.fault(pattern, faults.interim(pause))
    done = fetch(machine, 30)
    assert done.code == 5, done
    assert "announces an answer again and again" in " ".join(done.err.split()) or "too slow" in done.err, done
    hub.heal()
    assert (done := fetch(machine)).code == 0, done


def test_a_few_interim_answers_are_none_of_ours(hub, machine, commit):
    def early(_, response):
        head = "".join(f"HTTP/1.1 {line}\r\n\r\n" for line in ["103 Early Hints\r\nLink: </x>"] + ["100 Continue"] * 3)
        body = b"".join(response.blocks())
        response.raw = (head + f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n"
                        f"X-Repo-Commit: {commit.id}\r\n\r\n").encode() + body
    hub.fault(API, faults.Fault(early))
    hub.fault(SMALL, faults.Fault(early))
    assert (done := fetch(machine)).code == 0, done
    assert complete(machine, commit)


def test_what_came_slowly_is_kept(hub, machine, commit):
    """100,000 bytes arrive at once and then one now and then: no byte of them is asked for again."""
    etag = commit.files["build/torch-universal/library.so"].etag
    hub.fault(LARGE, faults.drip_after(100_000, 0.3), times=1)
    hub.fault(LARGE, faults.drip_after(0, 0.3), skip=1)
    done = fetch(machine, 30)
    assert done.code == 5 and "too slow" in done.err, done
    hub.heal()
    hub.forget()
    assert (done := fetch(machine)).code == 0, done
    assert complete(machine, commit)
    assert hub.served()[etag] <= 200_010


def test_a_slow_network_is_waited_for(hub, machine, commit):
    """40,000 bytes a second are not many, but more than 20,000."""
    hub.fault(LARGE, faults.trickle(10_000, 0.25))
    assert (done := fetch(machine)).code == 0, done
    assert len(hub.requests(LARGE)) == 1
    assert complete(machine, commit)


def test_many_at_once_share_a_slow_network(hub, machine):
    """Each of them gets less than the least rate; all together get more."""
    files = {f"file_{i}.py": os.urandom(12_000) for i in range(12)}
    commit = hub.add("acme/norm").commit(kernel("norm", files=files), branch="v1")
    hub.fault("/kernels/*/file_*.py", faults.trickle(1_000, 0.25))
    assert (done := fetch(machine)).code == 0, done
    assert len(hub.requests("/kernels/*/file_*.py")) == 12
    assert complete(machine, commit)


def test_the_least_rate_may_be_none(hub, machine, commit):
    hub.fault(SMALL, faults.trickle(800, 0.5))
    assert (done := fetch(machine, TWINKLE_LOW_SPEED_LIMIT="0")).code == 0, done
    assert len(hub.requests(SMALL)) == 1


@pytest.mark.parametrize("name", ["TWINKLE_LOW_SPEED_LIMIT", "TWINKLE_LOW_SPEED_TIME"])
def test_a_rate_that_is_none_is_refused(hub, machine, commit, name):
    done = fetch(machine, **{name: "fast"})
    assert done.code == 2 and name in done.err, done
