"""The reference's side of signature_bench.py, run by the Python that has sigstore and kernels:

    python signature_reference.py blobs FOLDER… | builds FOLDER… | one FOLDER

`blobs` are folders like those of the conformance suite, `builds` those of signed_builds. Prints one line of JSON
for each: name, accepted, why, seconds. `one` verifies one blob and nothing else, to time the process."""

import json
import pathlib
import sys
import time

IDENTITY = ("https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/workflows/"
            "extremely-dangerous-oidc-beacon.yml@refs/heads/main")
ISSUER = "https://token.actions.githubusercontent.com"


def verify_blob(case):
    from sigstore.dsse import Envelope, Statement
    from sigstore.errors import VerificationError
    from sigstore.models import Bundle, TrustedRoot
    from sigstore.hashes import Hashed
    from sigstore._utils import sha256_digest
    from sigstore.verify import Verifier, policy

    def said(name, otherwise):
        return (case / name).read_text().strip() if (case / name).exists() else otherwise

    root = case / "trusted_root.json"
    artifact = case / "artifact" if (case / "artifact").exists() else case.parent / "a.txt"
    verifier = Verifier(trusted_root=TrustedRoot.from_file(str(root if root.exists() else case.parent / root.name)))
    bundle = Bundle.from_json((case / "bundle.sigstore.json").read_bytes())
    who = policy.Identity(identity=said("identity", IDENTITY), issuer=said("issuer", ISSUER))
    with artifact.open("rb") as file:
        digest: Hashed = sha256_digest(file)
    if bundle._dsse_envelope is None:
        verifier.verify_artifact(digest, bundle, who)
        return
    kind, payload = verifier.verify_dsse(bundle, who)
    if kind != Envelope._TYPE or not Statement(payload)._matches_digest(digest):
        raise VerificationError("the statement is not about the artifact")


def verify_build(case):
    import kernels.verify
    from sigstore.models import TrustedRoot
    from sigstore.verify import Verifier

    class Ours(Verifier):
        @classmethod
        def production(cls, *, offline=False):
            return Verifier(trusted_root=TrustedRoot.from_file(str(case / "trusted_root.json")))

    kernels.verify.Verifier = Ours
    result = kernels.verify.verify_variant(case / "build")
    if type(result).__name__ != "Success":
        raise ValueError(repr(result))


def main():
    kind, folders = sys.argv[1], [pathlib.Path(name) for name in sys.argv[2:]]
    verify = verify_build if kind == "builds" else verify_blob
    for case in folders:
        started = time.perf_counter()
        why = None
        try:
            verify(case)
        except Exception as error:  # whatever it is, it is no acceptance
            why = f"{type(error).__name__}: {error}"[:300]
        print(json.dumps({"name": case.name, "accepted": why is None, "why": why,
                          "seconds": time.perf_counter() - started}))


main()
