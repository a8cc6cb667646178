"""Signatures by policy, on builds that a Sigstore instance of the tests signed (program signed_builds)."""

import json
import subprocess

import pytest
from conftest import PROGRAM, all_files

BUILDER = PROGRAM.parents[1] / "tests/signed_builds"
REPOSITORY = "kernels-community/layer-norm"
TARGET = ["--target", "torch=2.13,backend=cpu,cpu=x86_64,os=linux,cxx11=1"]


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signed")
    subprocess.run([BUILDER, folder], check=True, capture_output=True)
    return folder


@pytest.fixture
def publish(hub, machine, builds):
    """A case of signed_builds as version 1 of the kernel, and a project that asks for it."""
    def publish(case, policy="require", repository=REPOSITORY):
        made = builds / ("rekor1-build" if case == "metadata-with-a-space" else case)
        files = {f"build/torch-cpu/{path}": content for path, content in all_files(made / "build").items()}
        if case == "metadata-with-a-space":
            files["build/torch-cpu/metadata.json"] += b" "
        (hub.repositories.get(repository) or hub.add(repository)).commit(files, branch="v1")
        machine.write("root.json", (made / "trusted_root.json").read_text())
        machine.write("twinkle.toml", f'signature = "{policy}"\ntrusted_root = "root.json"\n\n'
                                      f'[kernels]\n"{repository}" = 1\n')
        done = machine.twinkle("lock")
        assert done.code == 0, done
    return publish


@pytest.mark.parametrize("case", ["rekor1-build", "rekor2-sign-old-builds"])
def test_signed_by_the_publisher(publish, machine, case):
    publish(case)
    assert (done := machine.twinkle("fetch", "--locked", *TARGET)).code == 0, done
    assert "warning" not in done.err
    verified = machine.twinkle("verify", "--json")
    assert verified.code == 0, verified
    signature = verified.json["builds"][0]["signature"]
    assert signature["state"] == "verified"
    assert signature["source_repository"] == "https://github.com/huggingface/kernels-community"
    assert "/.github/workflows/" in signature["workflow"]
    # The public root knows nothing of the instance that signed this.
    machine.write("root.json", "{}")
    assert machine.twinkle("verify").code == 2
    assert (done := machine.twinkle("verify", "--signature", "off")).code == 0, done


@pytest.mark.parametrize("case, words", [
    ("other-workflow", "signed by somebody else"),
    ("other-repository", "signed by somebody else"),
    ("bundle-gone", "not signed"),
    ("bundle-empty", "cannot be read"),
    ("metadata-with-a-space", "not what was signed"),
    ("file-changed", "files of"),
])
def test_refused_where_a_signature_is_required(publish, machine, case, words):
    publish(case)
    for command in (["fetch", *TARGET], ["verify"], ["resolve", *TARGET]):
        done = machine.twinkle(*command, "--json")
        assert done.code == 4, (command, done)
        assert words in json.dumps(done.error), (command, done)
    # Somebody who does not insist is told.
    manifest = (machine.project / "twinkle.toml").read_text()
    machine.write("twinkle.toml", manifest.replace('"require"', '"warn"'))
    done = machine.twinkle("verify")
    assert words in done.err, done
    assert done.code == (4 if case == "file-changed" else 0), done


def test_the_signed_build_of_another_kernel_is_refused(publish, machine):
    """The publisher has signed it, for a kernel of another name: whoever serves it has put it here."""
    publish("rekor1-build", repository="kernels-community/rms-norm")
    for command in (["fetch", "--locked", *TARGET], ["verify"]):
        done = machine.twinkle(*command)
        said = " ".join(done.err.split())
        assert done.code == 4 and "the signed metadata is that of the kernel 'layer-norm'" in said, done
    told = machine.twinkle("verify", "--signature", "warn", "--json")
    signature = told.json["builds"][0]["signature"]
    assert told.code == 0 and signature["state"] == "other-kernel", signature
    assert "kernels-community/rms-norm" in signature["because"], signature


def test_without_a_policy_what_is_unsigned_is_said_once(publish, machine):
    publish("bundle-gone", policy="warn")
    first = machine.twinkle("fetch", *TARGET)
    assert (first.code, "not signed" in first.err) == (0, True), first
    again = machine.twinkle("fetch", *TARGET)
    assert (again.code, "not signed" in again.err) == (0, False), again
    assert machine.twinkle("fetch", *TARGET, "--signature", "require").code == 4
    assert machine.twinkle("fetch", *TARGET, "--signature", "of").code == 2
