#include "world.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/base64.h"
#include "base/file.h"
#include "instance.h"
#include "sigstore/bundle.h"
#include "sigstore/hash.h"

namespace twinkle::fuzz {
namespace {

namespace fs = std::filesystem;

std::vector<test::SignatureSpec> specs() {
    using Log = test::SignatureSpec::Log;
    std::vector<test::SignatureSpec> all(6);
    all[0].timestamp = true;
    all[1].log = Log::v2;
    all[2].dsse = true;
    all[3].dsse = true;
    all[3].log = Log::v1_intoto;
    all[4].dsse = true;
    all[4].log = Log::v2_dsse;
    all[4].embed_certificate = true;
    all[5].version = "0.2";
    all[5].signer.build_signer = test::default_identity;
    all[5].signer.source_repository = "https://github.com/org/name";
    all[5].signer.log_extensions = std::string("\0\0\5\0\0\0\0\7", 8);
    return all;
}

}  // namespace

World make_world() {
    const test::Instance instance;
    World made;
    made.root_json = instance.trusted_root();
    made.root = sigstore::parse_trusted_root(made.root_json, "trusted_root.json");
    made.seeds["trusted_root"] = {made.root_json};
    for (const auto& spec : specs()) {
        const auto json = instance.sign(artifact, spec);
        const auto bundle = sigstore::parse_bundle(json, "bundle");
        made.seeds["bundle"].push_back(json);
        made.seeds["certificate"].push_back(bundle.certificate);
        made.seeds["checkpoint"].push_back(bundle.entry.proof.checkpoint);
        for (const auto& timestamp : bundle.timestamps) {
            made.seeds["timestamp"].push_back(timestamp);
        }
    }
    return made;
}

void write_world(const World& world, const std::string& folder) {
    fs::create_directories(folder);
    base::write_file_atomically(fs::path(folder) / "root.json", world.root_json);
    for (const auto& [target, seeds] : world.seeds) {
        fs::create_directories(fs::path(folder) / target);
        for (const auto& seed : seeds) {
            const auto name = base::to_hex(sigstore::hash(sigstore::HashAlgorithm::sha256, seed));
            base::write_file_atomically(fs::path(folder) / target / name.substr(0, 16), seed);
        }
    }
}

World read_world(const std::string& folder) {
    World read;
    read.root_json = base::read_file(fs::path(folder) / "root.json", "trusted root");
    read.root = sigstore::parse_trusted_root(read.root_json, "trusted_root.json");
    for (const char* target :
         {"bundle", "certificate", "checkpoint", "timestamp", "trusted_root"}) {
        for (const auto& name : base::list_files(fs::path(folder) / target)) {
            read.seeds[target].push_back(base::read_file(fs::path(folder) / target / name, "seed"));
        }
    }
    return read;
}

const World& world() {
    static const World shared = [] {
        const char* folder = std::getenv("TWINKLE_FUZZ_SEEDS");
        return folder != nullptr ? read_world(folder) : make_world();
    }();
    return shared;
}

void wrong(const char* what) {
    std::fprintf(stderr, "FALSE ACCEPT: %s\n", what);
    std::abort();
}

}  // namespace twinkle::fuzz
