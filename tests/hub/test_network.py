"""Between a user and the Hub: proxies, certificates, other names."""

import ssl
import subprocess

import faults
import pytest
from conftest import TOKEN, Machine
from repository import Repository, kernel
from server import Hub

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
