"""twinkle verify-blob: the cases of the public conformance suite, and generated ones."""

import json
import os
import pathlib
import subprocess

import pytest

from conftest import PROGRAM, ROOT

CONFORMANCE = ROOT.parent / "shared/conformance/sigstore"
IDENTITY = ("https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/workflows/"
            "extremely-dangerous-oidc-beacon.yml@refs/heads/main")
ISSUER = "https://token.actions.githubusercontent.com"
# Beside the program that is tested: build/NAME/bin/twinkle, build/NAME/tests/sigstore_cases.
GENERATOR = pathlib.Path(os.environ.get("TWINKLE_SIGSTORE_CASES") or PROGRAM.parents[1] / "tests/sigstore_cases")


def options_of(case):
    """The options for a folder: what it does not have is what the suite says by default."""
    def said(name, otherwise):
        return (case / name).read_text().strip() if (case / name).exists() else otherwise

    options = ["--bundle", case / "bundle.sigstore.json"]
    if (case / "trusted_root.json").exists():
        options += ["--trusted-root", case / "trusted_root.json"]
    if (case / "key.pub").exists():
        return [*options, "--key", case / "key.pub"]
    return [*options, "--certificate-identity", said("identity", IDENTITY), "--certificate-oidc-issuer",
            said("issuer", ISSUER)]


def artifact_of(case):
    return case / "artifact" if (case / "artifact").exists() else case.parent / "a.txt"


def conformance_cases():
    if not CONFORMANCE.is_dir():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"the conformance suite is not at {CONFORMANCE}"))]
    return [pytest.param(path, id=path.name) for path in sorted(CONFORMANCE.iterdir()) if path.is_dir()]


@pytest.mark.parametrize("case", conformance_cases())
def test_conformance(twinkle, case):
    done = twinkle("verify-blob", artifact_of(case), *options_of(case))
    if case.name.endswith("_fail"):
        assert done.code in (2, 4) and done.out == "" and done.err.startswith("error: ")
    else:
        assert (done.code, done.err) == (0, "")


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    if not GENERATOR.exists():
        pytest.skip(f"the tests are not built: {GENERATOR} is not there")
    folder = tmp_path_factory.mktemp("cases")
    subprocess.run([GENERATOR, folder], check=True)
    return folder


def test_generated(twinkle, generated):
    """The reasons are tested in tests/sigstore; here, that they become exit codes and words."""
    cases = sorted(generated.iterdir())
    assert len(cases) > 100
    for case in cases:
        done = twinkle("verify-blob", artifact_of(case), *options_of(case))
        reason = (case / "reason").read_text() if (case / "reason").exists() else None
        expected = 0 if reason is None else 2 if reason == "malformed" else 4
        assert done.code == expected, f"{case.name}: {done.err}"
        assert bool(done.out) == (expected == 0), case.name


def test_result_as_json(twinkle, generated):
    case = generated / "message-v2"
    done = twinkle("verify-blob", artifact_of(case), *options_of(case), "--json")
    identity, issuer = (case / "identity").read_text(), (case / "issuer").read_text()
    assert done.json == {
        "schema": "twinkle.verify-blob/1", "verified": True, "identity": [identity], "issuer": issuer,
        "times": [{"source": "timestamp-authority", "time": "2026-03-01T12:00:00Z"}],
        "log": "https://log2026.rekor.test", "log_index": 6}
    key = generated / "key-v1"
    done = twinkle("verify-blob", artifact_of(key), *options_of(key), "--json").json
    assert (done["identity"], done["issuer"]) == (None, None)


def test_refusal_as_json(twinkle, generated):
    case = generated / "other-identity_fail"
    done = twinkle("verify-blob", artifact_of(case), *options_of(case), "--json")
    assert (done.code, done.out) == (4, "")
    assert done.error["code"] == "verification"
    assert done.error["what"] == "the file is signed by somebody else"
    assert "release.yml" in done.error["why"]


def test_words_for_people(twinkle, generated):
    def refused(name):
        case = generated / f"{name}_fail"
        return twinkle("verify-blob", artifact_of(case), *options_of(case)).err

    assert "the file is not what was signed" in refused("v1-other-artifact")
    assert "the signature bundle is malformed" in refused("not-json")
    too_old = refused("root-of-another-instance")
    assert "the trusted root does not vouch" in too_old and "its newest entry is of 2026-01-01" in too_old
    assert "--key" in refused("certificate-for-key")


def test_wrong_usage(twinkle, generated, tmp_path):
    case = generated / "message-v1"
    artifact, options = artifact_of(case), options_of(case)
    assert twinkle("verify-blob", artifact).code == 2
    assert twinkle("verify-blob", artifact, *options[:4]).code == 2
    assert twinkle("verify-blob", artifact, *options, "--key", case / "artifact").code == 2
    assert twinkle("verify-blob", artifact, *options[:4], "--key", case / "artifact").code == 2
    assert twinkle("verify-blob", tmp_path / "nothing", *options).code == 3
    assert twinkle("verify-blob", artifact, "--bundle", tmp_path / "nothing", *options[2:]).code == 3
    done = twinkle("verify-blob", artifact, *options[:2], "--trusted-root", case / "identity", *options[4:])
    assert done.code == 2 and "identity" in done.err


def test_large_artifact_is_streamed(twinkle, generated, tmp_path):
    """A file above the size of what is read into memory; its hash is not the one that was signed."""
    case = generated / "message-v1"
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(200 << 20)
    done = twinkle("verify-blob", large, *options_of(case), "--json")
    assert done.error["what"] == "the file is not what was signed"
    large.unlink()
