// Writes signed builds of kernels, right and wrong, for comparison with other verifiers:
// signed_builds FOLDER. Prints one line for each, with its name and our verdict.
#include <iostream>

#include "instance.h"
#include "kernel/signature.h"
#include "kernel_folder.h"

using namespace twinkle;
using test::Json;
using test::SignatureSpec;
namespace fs = std::filesystem;

namespace {

const std::string community = "https://github.com/huggingface/kernels-community";

SignatureSpec by(const std::string& repository, const std::string& workflow) {
    SignatureSpec spec;
    spec.signer.build_signer = repository + "/.github/workflows/" + workflow;
    spec.signer.names = "critical,URI:" + spec.signer.build_signer;
    spec.signer.source_repository = repository;
    return spec;
}

const SignatureSpec usual = by(community, "build.yaml@refs/heads/main");

class Writer {
public:
    explicit Writer(fs::path folder) : folder_(std::move(folder)) {}

    // A build that is signed like this, and then changed.
    void add(const std::string& name, const SignatureSpec& spec,
             const std::function<void(const fs::path&)>& change = {}) {
        const test::TempFolder made;
        test::write_build(made, "build", "layer-norm", "cpu");
        const auto target = folder_ / name;
        fs::remove_all(target);
        fs::create_directories(target);
        fs::copy(made / "build", target / "build", fs::copy_options::recursive);
        const auto metadata = target / "build/metadata.json";
        write(target / "build/metadata.json.sigstore",
              instance_.sign(base::read_file(metadata, "metadata"), spec));
        write(target / "trusted_root.json", instance_.trusted_root());
        if (change) {
            change(target / "build");
        }
        const auto verdict =
            kernel::check_signature(target / "build", "kernels-community/layer-norm",
                                    sigstore::read_trusted_root(target / "trusted_root.json"));
        std::cout << name << " " << kernel::signature_state_name(verdict.state) << "\n";
    }

    static void write(const fs::path& file, const std::string& text) {
        base::write_file_atomically(file, text);
    }
    static void flip(const fs::path& file, std::size_t divisor) {
        auto text = base::read_file(file, "file");
        text[text.size() / divisor] = static_cast<char>(text[text.size() / divisor] ^ 1);
        write(file, text);
    }

private:
    fs::path folder_;
    test::Instance instance_;
};

void add_signers(Writer& writer) {
    for (const char* name : {"build", "build-mac", "build-windows", "sign-old-builds"}) {
        auto spec = by(community, std::string(name) + ".yaml@refs/heads/main");
        writer.add(std::string("rekor1-") + name, spec);
        spec.log = SignatureSpec::Log::v2;
        writer.add(std::string("rekor2-") + name, spec);
    }
    writer.add("other-workflow", by(community, "test.yaml@refs/heads/main"));
    writer.add("other-branch", by(community, "build.yaml@refs/heads/fix"));
    writer.add("other-repository", by("https://github.com/a/b", "build.yaml@refs/heads/main"));
    auto spec = usual;
    spec.signer.source_repository = "https://github.com/a/b";
    writer.add("other-source", spec);
    spec = usual;
    spec.signer.issuer = "https://example.org";
    writer.add("other-issuer", spec);
    spec = usual;
    spec.signer.other_issuer = "";
    writer.add("issuer-in-old-extension-only", spec);
    spec = usual;
    spec.signer.build_signer.clear();
    writer.add("no-build-signer", spec);
    spec = usual;
    spec.dsse = true;
    writer.add("envelope", spec);
}

void add_changes(Writer& writer) {
    using Path = const fs::path&;
    writer.add("metadata-changed", usual,
               [](Path build) { Writer::flip(build / "metadata.json", 2); });
    writer.add("metadata-gone", usual, [](Path build) { fs::remove(build / "metadata.json"); });
    writer.add("bundle-gone", usual,
               [](Path build) { fs::remove(build / "metadata.json.sigstore"); });
    writer.add("bundle-empty", usual,
               [](Path build) { Writer::write(build / "metadata.json.sigstore", ""); });
    for (std::size_t divisor = 2; divisor < 12; ++divisor) {
        writer.add("bundle-changed-" + std::to_string(divisor), usual,
                   [=](Path build) { Writer::flip(build / "metadata.json.sigstore", divisor); });
    }
    writer.add("file-changed", usual, [](Path build) { Writer::flip(build / "layers.py", 2); });
    writer.add("file-gone", usual, [](Path build) { fs::remove(build / "layers.py"); });
    writer.add("file-too-many", usual, [](Path build) { Writer::write(build / "more.py", "x"); });
    writer.add("bytecode", usual, [](Path build) { Writer::write(build / "more.pyc", "x"); });
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: signed_builds FOLDER\n";
        return 2;
    }
    Writer writer(argv[1]);
    add_signers(writer);
    add_changes(writer);
    return 0;
}
