#include "project/lock.h"

#include <algorithm>
#include <random>

#include "base/base64.h"
#include "base/evp.h"
#include "base/sha256.h"
#include "base/temp_folder.h"
#include "base/text.h"
#include "base/throws.h"
#include "catch.h"
#include "kernel/kernel_folder.h"
#include "project/lock_samples.h"

using namespace twinkle;
using namespace twinkle::project;
using test::error_of;
using test::locked_kernel;
using test::sample_lock;
using test::version;

namespace {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

ErrorCode code_of(const std::string& text) {
    const auto error = error_of([&] { parse_lock(text, "twinkle.lock"); });
    REQUIRE(error);
    INFO(error->what());
    CHECK(error->details().where.starts_with("twinkle.lock:"));
    return error->code();
}

Manifest manifest_for(const test::TempFolder& folder, std::string_view text) {
    return load_manifest(folder.write("twinkle.toml", text), folder / "presets");
}

constexpr std::string_view fitting = R"([kernels]
"acme/user" = 1
"acme/base" = 10
"acme/old" = ">=0.1,<0.3"
mine = { path = "kernels/mine" }
)";

bool has_reason(const std::vector<std::string>& reasons, std::string_view words) {
    INFO(base::join(reasons, "\n"));
    return std::any_of(reasons.begin(), reasons.end(), [&](const std::string& reason) {
        return reason.find(words) != std::string::npos;
    });
}

}  // namespace

TEST_CASE("a lock is read as it was written, and written as it was read") {
    const Lock lock = sample_lock();
    const std::string text = lock_toml(lock);
    CHECK(parse_lock(text, "l").kernels == lock.kernels);
    CHECK(lock_toml(parse_lock(text, "l")) == text);
    CHECK(lock_toml(Lock{}).ends_with("version = 1\n"));
    CHECK(parse_lock(lock_toml(Lock{}), "l").kernels.empty());

    auto shuffled = lock.kernels;
    std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(1));
    Lock again;
    for (LockedKernel& kernel : shuffled) {
        again.set(std::move(kernel));
    }
    CHECK(lock_toml(again) == text);
}

TEST_CASE("one file is one line, whatever its hashes") {
    const std::string text = lock_toml(sample_lock());
    CHECK(text.find("    { path = \"_ops.abi3.so\", size = 123456, sha256 = \"") !=
          std::string::npos);
    CHECK(text.find("    { path = \"sub/é \\\"x\\\".py\", size = 0, git = \"") !=
          std::string::npos);
    CHECK(text.find("version = \">=0.1,<0.3\"\nref = \"v0.2.1\"\n") != std::string::npos);
    CHECK(text.find("path = \"kernels/mine\"\nchecksum = \"") != std::string::npos);
    CHECK(text.find("\nversion = 2\nref = \"v2\"") < text.find("\nversion = 10\nref = \"v10\""));
}

TEST_CASE("what the lock finds, and the tree of a kernel") {
    const Lock lock = sample_lock();
    const LockedKernel* user = lock.find("acme/user", version(1));
    REQUIRE(user != nullptr);
    CHECK(lock.find("acme/user", version(2)) == nullptr);
    CHECK(lock.find("mine", {}) == nullptr);
    CHECK(lock.find_local("mine") != nullptr);
    CHECK(lock.tree(*user).size() == 3);
    CHECK(lock.tree(*user, "torch-cuda").size() == 3);
    CHECK(lock.tree(*user, "torch-universal").size() == 1);
    CHECK(user->dependencies().size() == 2);
    CHECK(user->find("torch-cuda")->size() == 20 + 123456 + 300);
}

TEST_CASE("malformed locks are refused with their place") {
    const std::string text = lock_toml(sample_lock());
    for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
             {"version = 1\n", "version = 2\n"},
             {"version = 1\n", ""},
             {"version = 1\n", "version = 1\nextra = 1\n"},
             {"name = \"acme/base\"", "name = \"../base\""},
             {"name = \"acme/base\"", "name = 3"},
             {"ref = \"v2\"", "ref = \"a..b\""},
             {"ref = \"v2\"\n", ""},
             {"path = \"_ops.abi3.so\"", "path = \"../_ops.abi3.so\""},
             {"path = \"_ops.abi3.so\"", "path = \"/etc/passwd\""},
             {"path = \"_ops.abi3.so\"", "path = \"__init__.py\""},
             {"size = 123456", "size = -1"},
             {"size = 123456", "size = 1.5"},
             {"name = \"torch-cuda\"", "name = \"..\""},
             {"name = \"torch-cuda\"", "name = \"torch-universal\""},
             {"name = \"torch-cuda\"", "name = \"a/b\""},
             {"checksum = ", "checksums = "},
             {"git = \"b", "git = \"x"},
             {std::string(64, 'c'), std::string(63, 'c')},
             {"commit = \"cc", "commit = \"CC"},
             {"revision = \"dev\"\n", ""},
             {"\n[[kernel]]", "\n[[kernel]"},
             {"path = \"kernels/mine\"", "path = \"kernels/mine\"\nversion = 1"},
         }) {
        INFO(from << " -> " << to);
        CHECK(code_of(replaced(text, from, to)) == ErrorCode::malformed);
    }
    CHECK(code_of("[[kernel]]\nname = 1\n") == ErrorCode::malformed);
    CHECK(code_of("version = 1\nkernel = 3\n") == ErrorCode::malformed);
}

TEST_CASE("hostile locks end in an error") {
    std::mt19937 random(7);
    const Lock original = sample_lock();
    const std::string text = lock_toml(original);
    for (int round = 0; round < 2000; ++round) {
        std::string changed = text;
        const std::size_t at = random() % changed.size();
        switch (random() % 4) {
            case 0: changed[at] = static_cast<char>(random()); break;
            case 1: changed.erase(at, random() % 200); break;
            case 2: changed.insert(at, changed.substr(random() % changed.size(), 50)); break;
            default: changed.resize(at); break;
        }
        std::optional<Lock> read;
        error_of([&] { read = parse_lock(changed, "l"); });
        // If it is still accepted, all its kernels are whole ones of the original.
        for (const LockedKernel& kernel : read.value_or(Lock{}).kernels) {
            const auto& all = original.kernels;
            CHECK(std::find(all.begin(), all.end(), kernel) != all.end());
        }
    }
}

TEST_CASE("a conflict that git left is told apart") {
    const std::string text = lock_toml(sample_lock());
    for (const char* marker : {"<<<<<<< HEAD", "=======", ">>>>>>> other", "||||||| base"}) {
        const auto error = error_of([&] {
            parse_lock(replaced(text, "\n[[kernel]]", "\n" + std::string(marker) + "\n"), "l");
        });
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::malformed);
        CHECK(error->details().what == "the lock has a conflict that git could not merge");
        CHECK(error->details().where == "l:5:1");
    }
}

TEST_CASE("lines of two states do not pass as one lock") {
    const std::string text = lock_toml(sample_lock());
    // The commit of one state, the files of another.
    CHECK(code_of(replaced(text, std::string(40, 'a'), std::string(40, '9'))) ==
          ErrorCode::out_of_date);
    CHECK(code_of(replaced(text, "size = 123456", "size = 123457")) == ErrorCode::out_of_date);
    // A kernel that both sides of a merge have added.
    const auto begin = text.find("[[kernel]]");
    const auto end = text.find("[[kernel]]", begin + 1);
    const std::string first = text.substr(begin, end - begin);
    CHECK(code_of(text.substr(0, begin) + first + text.substr(begin)) == ErrorCode::out_of_date);
    CHECK(code_of(text + "\n" + first) == ErrorCode::out_of_date);
    // A build that moved from one kernel to its neighbour.
    const auto variant = first.find("[[kernel.variant]]", first.find("[[kernel.variant]]") + 1);
    CHECK(code_of(replaced(text, first.substr(variant), "")) == ErrorCode::out_of_date);
}

TEST_CASE("a lock that fits") {
    const test::TempFolder folder;
    CHECK(lock_mismatches(manifest_for(folder, fitting), sample_lock()).empty());
}

TEST_CASE("every reason why a lock does not fit") {
    const test::TempFolder folder;
    const auto reasons = [&](std::string_view text, const Lock& lock) {
        return lock_mismatches(manifest_for(folder, text), lock);
    };
    const std::string text(fitting);
    CHECK(has_reason(reasons(text + "\"acme/new\" = 1\n", sample_lock()),
                     "acme/new@1 is not locked"));
    CHECK(has_reason(reasons(replaced(text, "user\" = 1", "user\" = 2"), sample_lock()),
                     "acme/user is asked for as 2, and locked as 1"));
    const auto dropped =
        reasons(replaced(text, "\"acme/old\" = \">=0.1,<0.3\"\n", ""), sample_lock());
    REQUIRE(dropped.size() == 1);
    CHECK(dropped[0] == "acme/old@>=0.1,<0.3 is locked, and nothing asks for it");

    Lock lock = sample_lock();
    std::erase_if(lock.kernels, [](const LockedKernel& k) { return k.pin == version(2); });
    CHECK(reasons(text, lock) ==
          std::vector<std::string>{"acme/user@1 depends on acme/base@2, which is not locked"});

    lock = sample_lock();
    lock.set(locked_kernel("acme/base", test::revision("v10"), "v10", '7'));
    CHECK(has_reason(reasons(text, lock), "both mean v10, but are locked at two commits"));

    CHECK(has_reason(reasons(replaced(text, "kernels/mine", "kernels/moved"), sample_lock()),
                     "is in kernels/moved, and locked in kernels/mine"));
    CHECK(has_reason(reasons(text + "other = { path = \"x\" }\n", sample_lock()),
                     "the local kernel other is not locked"));
    CHECK(reasons("", Lock{}).empty());
    CHECK(reasons("", sample_lock()).size() == sample_lock().kernels.size());
}

TEST_CASE("a build out of the list of files and its metadata") {
    base::Json metadata = test::metadata_json("a-norm", "cuda");
    metadata["backend"]["archs"] = {"9.0"};
    metadata["kernel-depends"] = {{{"repo-id", "z/b"}, {"revision", "main"}},
                                  {{"repo-id", "a/b"}, {"version", 3}}};
    base::EvpDigest digest(base::DigestKind::sha256);
    digest.update("text");
    metadata["digest"] = {{"algorithm", "sha256"},
                          {"files", {{"layers.py", base::to_base64(digest.finish())}}}};
    const std::string json = metadata.dump();
    const std::vector<cache::TreeFile> tree{
        {"README.md", 3, std::string(40, '1'), std::nullopt, std::nullopt},
        {"build/torch-cuda/x.so", 9, std::string(40, '2'), std::string(64, '3'), std::nullopt},
        {"build/torch-cuda/layers.py", 4, std::string(40, '4'), std::nullopt, std::nullopt},
        {"build/torch-cuda/metadata.json", 5, std::string(40, '5'), std::nullopt, std::nullopt},
        {"build/torch-cuda/__pycache__/layers.pyc", 5, std::string(40, '6'), std::nullopt,
         std::nullopt},
        {"build/torch-cuda2/layers.py", 4, std::string(40, '4'), std::nullopt, std::nullopt}};
    const LockedVariant variant = lock_variant("torch-cuda", tree, json, "metadata.json");
    CHECK(variant.archs == std::vector<std::string>{"9.0"});
    REQUIRE(variant.dependencies.size() == 2);
    CHECK(variant.dependencies[0].text() == "a/b@3");
    CHECK(variant.dependencies[1].text() == "z/b@main");
    REQUIRE(variant.files.size() == 3);
    CHECK(variant.files[0].path == "layers.py");
    CHECK(variant.files[0].git_sha1 == std::string(40, '4'));
    CHECK(variant.files[0].sha256 == base::sha256_hex("text"));
    CHECK(variant.files[1].sha256 == base::sha256_hex(json));
    CHECK(variant.files[2].git_sha1.empty());
    CHECK(variant.files[2].sha256 == std::string(64, '3'));
}

TEST_CASE("local kernels are locked over their folder") {
    const test::TempFolder folder;
    test::write_build(folder, "k/build/torch-cpu", "a-norm", "cpu");
    test::write_build(folder, "one", "a-norm", "cpu");
    folder.write("plain/__init__.py", "");
    folder.write("plain/__pycache__/x.pyc", "x");
    const std::string text =
        "[kernels]\nk = { path = \"k\" }\none = { path = \"one\" }\nplain = { path = \"plain\" }\n";
    const Manifest manifest = manifest_for(folder, text);
    Lock lock;
    for (const KernelRequest& request : manifest.kernels) {
        lock.set(lock_local_kernel(request, folder.path()));
    }
    CHECK(parse_lock(lock_toml(lock), "l").kernels == lock.kernels);
    CHECK(lock.find_local("k")->path == "k");
    CHECK(lock.find_local("k")->variants[0].name == "torch-cpu");
    CHECK(lock.find_local("one")->variants[0].name == ".");
    CHECK(lock.find_local("one")->variants[0].metadata_sha256.size() == 64);
    CHECK(lock.find_local("plain")->variants[0].files.size() == 1);
    CHECK(lock_mismatches(manifest, lock).empty());
    CHECK(local_mismatches(manifest, lock).empty());
    folder.write("plain/__init__.py", "x");
    folder.write("k/build/torch-cuda/metadata.json", "{}");
    std::filesystem::remove(folder / "one/layers.py");
    CHECK(error_of([&] { local_mismatches(manifest, lock); })->code() == ErrorCode::malformed);
    std::filesystem::remove_all(folder / "k/build/torch-cuda");
    const auto reasons = local_mismatches(manifest, lock);
    CHECK(reasons.size() == 2);
    CHECK(has_reason(reasons, "plain is not as it was locked: __init__.py has 1 bytes, not 0"));
    CHECK(has_reason(reasons, "one is not as it was locked: layers.py is missing"));
}
