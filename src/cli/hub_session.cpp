#include "cli/hub_session.h"

#include "base/quantity.h"

namespace twinkle::cli {
namespace {

operations::ContextOptions options_for(const Console& console,
                                       std::optional<std::string> lockfile) {
    operations::ContextOptions options;
    options.project = console.globals().project;
    options.start = std::filesystem::current_path();
    if (lockfile) {
        options.lockfile = *lockfile;
    }
    options.offline = console.globals().offline;
    options.explain_requests = console.globals().verbosity >= 2;
    return options;
}

}  // namespace

void ConsoleListener::busy(std::string_view what, std::uint64_t done, std::uint64_t total) {
    if (console_.progress().enabled()) {
        console_.progress().show(std::string(what) + "  " + base::human_bytes(done) + "/" +
                                 base::human_bytes(total));
    }
}

HubSession::HubSession(Console& console, std::optional<std::string> lockfile)
    : listener_(console),
      context_(options_for(console, std::move(lockfile)), listener_, interrupt_.stop()) {
    if (!context_.settings().token.empty()) {
        hub::refuse_core_dumps();
    }
}

Option target_option(bool repeatable) {
    return {.names = "--target",
            .value = "TARGET",
            .help =
                "The machine to decide for: here (default), a name from [targets] in the "
                "manifest, a file from twinkle env --json, or "
                "torch=2.13,backend=cu130,arch=9.0,…" +
                std::string(repeatable ? "; may be given several times" : ""),
            .kind = ValueKind::file,
            .repeatable = repeatable};
}

Option lockfile_option() {
    return {.names = "--lockfile",
            .value = "FILE",
            .help = "This lock instead of the project's twinkle.lock",
            .kind = ValueKind::file};
}

Option trust_option() {
    return {.names = "--trust",
            .value = "REPOSITORY",
            .help =
                "Trust this repository this once, though the Hub does not vouch for its "
                "publisher; trust = […] in the manifest keeps it",
            .repeatable = true};
}

Option signature_option() {
    return {.names = "--signature",
            .value = "POLICY",
            .help =
                "What becomes of builds that no trusted publisher signed: require (exit "
                "status 4), warn (default), off; signature = \"…\" in the manifest keeps it",
            .kind = ValueKind::choice,
            .choices = {"require", "warn", "off"},
            .restricted = true};
}

Option trusted_root_option() {
    return {.names = "--trusted-root",
            .value = "FILE",
            .help = "A trusted_root.json, instead of the one of sigstore.dev that is built in",
            .kind = ValueKind::file};
}

project::SignatureOptions signature_options(const Arguments& arguments) {
    project::SignatureOptions options;
    if (const auto policy = arguments.text("signature")) {
        options.policy = kernel::parse_signature_policy(*policy);
    }
    if (const auto root = arguments.text("trusted-root")) {
        options.trusted_root = *root;
    }
    return options;
}

std::string state_text(const std::string& ref, const std::string& commit) {
    const auto short_commit = commit.substr(0, 12);
    if (ref.empty() || commit.empty() || ref == commit) {
        return ref == commit ? short_commit : ref + short_commit;
    }
    return ref + " (" + short_commit + ")";
}

std::string kernel_text(const std::string& kernel) {
    const auto at = kernel.find('@');
    const bool commit = at != std::string::npos && cache::is_commit(kernel.substr(at + 1));
    return commit ? kernel.substr(0, at + 13) : kernel;
}

}  // namespace twinkle::cli
