// twinkle verify-blob: one signature over one file.

#include "base/file.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/hub_session.h"
#include "sigstore/verify.h"

namespace twinkle::cli {
namespace {

[[noreturn]] void wrong_usage(std::string what, std::string hint) {
    throw Error(ErrorCode::malformed,
                {.what = std::move(what), .where = {}, .why = {}, .hint = std::move(hint)});
}

std::string need(const Arguments& arguments, const char* option) {
    const auto value = arguments.text(option);
    if (!value) {
        wrong_usage(std::string("--") + option + " is missing",
                    "twinkle verify-blob --help shows its options");
    }
    return *value;
}

sigstore::PublicKey read_key(const std::string& path) {
    const auto key = sigstore::PublicKey::from_pem(base::read_file(path, "public key", 1u << 16));
    if (!key) {
        throw Error(ErrorCode::malformed,
                    {.what = "the public key cannot be used",
                     .where = path,
                     .why = "it is no PEM of an ECDSA (P-256, P-384, P-521), RSA or Ed25519 key",
                     .hint = {}});
    }
    return *key;
}

sigstore::Verified verify(const Arguments& arguments) {
    const auto bundle_path = need(arguments, "bundle");
    const auto key = arguments.text("key");
    if (key &&
        (arguments.text("certificate-identity") || arguments.text("certificate-oidc-issuer"))) {
        wrong_usage("--key and --certificate-… exclude each other",
                    "a key has no identity but itself");
    }
    const auto root_path = arguments.text("trusted-root");
    const auto root =
        root_path ? sigstore::read_trusted_root(*root_path) : sigstore::public_trusted_root();
    const sigstore::ArtifactFile artifact(*arguments.text("ARTIFACT"));
    if (key) {
        const auto trusted_key = read_key(*key);
        return sigstore::verify_with_key(sigstore::read_bundle(bundle_path), artifact, root,
                                         trusted_key);
    }
    const auto policy = sigstore::signed_by(need(arguments, "certificate-identity"),
                                            need(arguments, "certificate-oidc-issuer"));
    return sigstore::verify(sigstore::read_bundle(bundle_path), artifact, root, policy);
}

const char* source_name(sigstore::VerifiedTime::Source source) {
    return source == sigstore::VerifiedTime::Source::log ? "log" : "timestamp-authority";
}

base::Json to_json(const sigstore::Verified& verified) {
    base::Json times = base::Json::array();
    for (const auto& [source, time] : verified.times) {
        times.push_back({{"source", source_name(source)}, {"time", sigstore::format_time(time)}});
    }
    const auto& signer = verified.signer;
    return {{"verified", true},
            {"identity", signer ? base::Json(signer->identities) : base::Json()},
            {"issuer", signer ? base::Json(signer->issuer) : base::Json()},
            {"times", times},
            {"log", verified.log},
            {"log_index", verified.log_index}};
}

int run_verify_blob(const Arguments& arguments, Console& console) {
    const auto artifact = *arguments.text("ARTIFACT");
    sigstore::Verified verified;
    try {
        verified = verify(arguments);
    } catch (const Error& error) {
        auto details = error.details();
        details.where = details.where.empty() ? artifact : details.where;
        throw Error(error.code(), details);
    }
    if (console.json()) {
        console.result("verify-blob", to_json(verified));
        return 0;
    }
    console.result(artifact + ": verified, signed by " +
                   (verified.signer ? *arguments.text("certificate-identity") : "the given key") +
                   " at " + sigstore::format_time(verified.times.front().time) + "\n");
    console.detail("entry " + std::to_string(verified.log_index) + " of " + verified.log);
    return 0;
}

}  // namespace

Command verify_blob_command() {
    return {
        .name = "verify-blob",
        .summary = "Verify a Sigstore signature of a file",
        .description =
            "Verifies that somebody signed the file: a bundle of version 0.1 to 0.3, with an entry "
            "of Rekor v1 or v2, over the file itself or over a statement that names it. Who must "
            "have signed is said by --certificate-identity and --certificate-oidc-issuer, or by "
            "--key. Nothing is fetched: the keys of sigstore.dev are built in.\n\n"
            "The exit status is 0 if the signature holds, 4 if it does not, and 2 if the bundle is "
            "malformed.",
        .arguments = {{.name = "ARTIFACT", .help = "The file that was signed"}},
        .options = {{.names = "--bundle",
                     .value = "FILE",
                     .help = "The Sigstore bundle (required)",
                     .kind = ValueKind::file},
                    {.names = "--certificate-identity",
                     .value = "ID",
                     .help = "Who must have signed: the URI or e-mail address in the certificate"},
                    {.names = "--certificate-oidc-issuer",
                     .value = "ISSUER",
                     .help = "Who must have vouched for that identity, as "
                             "https://token.actions.githubusercontent.com"},
                    trusted_root_option(),
                    {.names = "--key",
                     .value = "FILE",
                     .help = "The public key (PEM) that must have signed, instead of an identity",
                     .kind = ValueKind::file}},
        .examples =
            {{"A file that a workflow on GitHub signed",
              "twinkle verify-blob release.tar.gz --bundle release.tar.gz.sigstore.json "
              "--certificate-oidc-issuer https://token.actions.githubusercontent.com "
              "--certificate-identity "
              "https://github.com/org/name/.github/workflows/release.yml@refs/tags/v1"},
             {"One that is signed with a key of your own",
              "twinkle verify-blob model.pt --bundle model.pt.sigstore.json --key cosign.pub"}},
        .run = run_verify_blob};
}

}  // namespace twinkle::cli
