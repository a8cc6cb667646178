"""Between a user and the Hub: proxies, certificates, other names."""

import os
import ssl
import subprocess

import faults
import pytest
from conftest import TOKEN, Machine, all_files
from repository import Repository, kernel
from server import Hub
from wire2 import Host2

FETCH = ("fetch", "acme/norm@1", "--all-variants")
PASSWORD = "pr0xy-s3cret"


def publish(hub: Hub) -> None:
    hub.add("acme/norm").commit(kernel("norm", files={"library.so": b"\x7fELF" * 9000}), branch="v1")


def test_proxy(hub, machine):
    """The test Hub also answers as a proxy would: for a host that is nowhere else."""
    publish(hub)
    machine.env.update(HF_ENDPOINT="http://hub.invalid", http_proxy=f"http://me:{PASSWORD}@127.0.0.1:{hub.hub.port}")
    done = machine.twinkle("-vv", *FETCH)
    assert done.code == 0, done
    assert PASSWORD not in done.out + done.err
    assert {entry.headers["host"] for entry in hub.log} == {"hub.invalid", f"127.0.0.1:{hub.files.port}"}
    assert all("proxy-authorization" in entry.headers for entry in hub.log)


def test_proxy_that_is_gone(hub, machine):
    publish(hub)
    machine.env.update(HF_ENDPOINT="http://hub.invalid", http_proxy=f"http://me:{PASSWORD}@127.0.0.1:9")
    done = machine.twinkle("--json", *FETCH)
    assert done.code == 5, done
    assert "proxy" in done.err.lower() and PASSWORD not in done.err


def test_no_proxy(hub, machine):
    publish(hub)
    machine.env.update(http_proxy="http://127.0.0.1:9", no_proxy="127.0.0.1,other.example")
    assert machine.twinkle(*FETCH).code == 0


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """For 127.0.0.1, signed by nobody else."""
    folder = tmp_path_factory.mktemp("certificate")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", folder / "key.pem", "-out", folder / "certificate.pem", "-days", "2", "-subj",
                    "/CN=test hub", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return folder / "certificate.pem", context


@pytest.fixture
def http2(certificate, tmp_path):
    """A Hub that speaks HTTP/2, and a machine that knows its certificate."""
    path, _ = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path, path.with_name("key.pem"))
    hub = Hub(tls=context, host=Host2)
    machine = Machine(tmp_path / "machine", hub.endpoint)
    machine.env["SSL_CERT_FILE"] = path
    yield hub, machine
    hub.close()


def complete(machine: Machine, commit) -> bool:
    found = all_files(machine.snapshot("acme/norm", commit.id))
    return found == {path: file.content for path, file in commit.files.items() if path.startswith("build/")}


def test_http2(http2):
    """Hundreds of files over few connections, and a large one."""
    hub, machine = http2
    files = {f"module_{i:03}.py": f"# {i}\n" * 500 for i in range(300)} | {"library.so": os.urandom(6_000_000)}
    commit = hub.add("acme/norm").commit(kernel("norm", files=files), branch="v1")
    done = machine.twinkle(*FETCH)
    assert done.code == 0, done
    assert complete(machine, commit)
    assert hub.hub.accepted <= 4
    assert ":authority" in hub.log[-1].headers


def test_http2_streams_that_end_early(http2):
    hub, machine = http2
    commit = hub.add("acme/norm").commit(kernel("norm", files={"library.so": os.urandom(3_000_000)}), branch="v1")
    hub.fault("*/repos/*", faults.cut(1_000_000), times=2, host="files")
    hub.fault("/kernels/*.py", faults.cut(3), times=2)
    done = machine.twinkle(*FETCH)
    assert done.code == 0, done
    assert complete(machine, commit)
    assert hub.served()[commit.files["build/torch-universal/library.so"].etag] < 3_500_000


@pytest.fixture
def tls_hub(certificate):
    hub = Hub(tls=certificate[1])
    publish(hub)
    yield hub
    hub.close()


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "CURL_CA_BUNDLE"])
def test_certificate(tls_hub, certificate, tmp_path, variable):
    machine = Machine(tmp_path / "machine", tls_hub.endpoint)
    done = machine.twinkle("--json", *FETCH)
    assert done.code == 5 and "certificate" in done.err, done
    assert not tls_hub.log
    done = machine.twinkle(*FETCH, env={variable: certificate[0]})
    assert done.code == 0, done


def test_never_from_https_to_http(hub, tls_hub, certificate, tmp_path):
    publish(hub)
    machine = Machine(tmp_path / "machine", tls_hub.endpoint)
    machine.env.update(SSL_CERT_FILE=certificate[0], HF_TOKEN=TOKEN)
    tls_hub.tokens[TOKEN] = {"*"}
    tls_hub.fault("/api/kernels/*", faults.redirect(f"{hub.endpoint}/api/kernels/acme/norm/refs"))
    done = machine.twinkle("--json", *FETCH)
    assert done.code == 5, done
    assert not hub.log


def test_the_token_stays_where_it_was_meant_for(hub, tls_hub, certificate, tmp_path):
    """Neither from http to https, nor from one https host to another."""
    publish(hub)
    hub.tokens[TOKEN] = tls_hub.tokens[TOKEN] = {"*"}
    machine = Machine(tmp_path / "machine", hub.endpoint)
    machine.env.update(SSL_CERT_FILE=certificate[0], HF_TOKEN=TOKEN)
    for origin in (tls_hub.endpoint, tls_hub.files.origin):
        hub.fault("/api/kernels/acme/norm/re[fv]*", faults.redirect(f"{origin}/api/kernels/acme/norm/refs"))
        hub.fault("/kernels/*.py", faults.redirect(f"{origin}/kernels/x.py"))
        machine.twinkle("--json", *FETCH)
        hub.heal()
    assert tls_hub.log and not [entry for entry in tls_hub.log if "authorization" in entry.headers]
    machine.env["HF_ENDPOINT"] = tls_hub.endpoint
    tls_hub.fault("/api/kernels/acme/norm/re[fv]*",
                  faults.redirect(f"{tls_hub.files.origin}/api/kernels/acme/norm/refs"))
    machine.twinkle("--json", *FETCH)
    assert [entry for entry in hub.log if "authorization" in entry.headers]
    assert tls_hub.requests("/api/kernels/acme/norm/re[fv]*", host="files")
    assert not [entry for entry in tls_hub.requests(host="files") if "authorization" in entry.headers]


def test_moved_repositories(hub, machine):
    """The Hub redirects the old name, relatively or not; a kernel-status.toml does it one hop."""
    publish(hub)

    hub.add(Repository("old/norm", moved_to="acme/norm"))
    for absolute in (False, True):
        hub.absolute_moves = absolute
        done = machine.twinkle("fetch", "old/norm@1", "--all-variants", "--trust", "old/norm")
        assert done.code == 0, done
    hub.add("older/norm").commit({"kernel-status.toml": 'kind = "redirect"\ndestination = "acme/norm"\n'
                                                        'revision = "v1"\n'}, branch="main")
    done = machine.twinkle("fetch", "older/norm", "--all-variants", "--trust", "older/norm")
    assert done.code == 0, done
    assert "acme/norm" in done.err
    hub.add("oldest/norm").commit({"kernel-status.toml": 'kind = "redirect"\ndestination = "older/norm"\n'},
                                  branch="main")
    done = machine.twinkle("fetch", "oldest/norm", "--all-variants", "--trust", "oldest/norm")
    assert done.code in (3, 6), done
