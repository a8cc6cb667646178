// Writes the generated signatures as folders like those of the conformance suite, for tests and
// benchmarks that run programs: sigstore_cases FOLDER
#include <filesystem>
#include <iostream>

#include "base/file.h"
#include "cases.h"

using namespace twinkle;

namespace {

void write_case(const std::filesystem::path& folder, const test::SignatureCase& one) {
    std::filesystem::create_directories(folder);
    const auto write = [&](const char* name, const std::string& text) {
        base::write_file_atomically(folder / name, text);
    };
    write("bundle.sigstore.json", one.bundle);
    write("trusted_root.json", one.root);
    write("artifact", one.artifact);
    write("identity", one.identity);
    write("issuer", one.issuer);
    if (!one.key.empty()) {
        write("key.pub", one.key);
    }
    if (one.refused) {
        write("reason", std::string(sigstore::reason_name(*one.refused)));
    }
    if (!one.reference_differs.empty()) {
        write("reference_differs", one.reference_differs);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: sigstore_cases FOLDER\n";
        return 2;
    }
    const test::Instance instance;
    for (const auto& one : test::signature_cases(instance)) {
        write_case(std::filesystem::path(argv[1]) / (one.name + (one.refused ? "_fail" : "")), one);
    }
    return 0;
}
