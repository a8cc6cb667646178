// Resolving with a lock: commits and bytes are the locked ones.

#include <algorithm>

#include "base/sha256.h"
#include "base/text.h"
#include "cache/content_hash.h"
#include "catch.h"
#include "project/kernels_lock.h"
#include "project/lock.h"
#include "project/lock_samples.h"
#include "project/world.h"

using namespace twinkle;
using namespace twinkle::project;
using test::World;
namespace fs = std::filesystem;

namespace {

const std::string old_commit(40, 'a');
const std::string new_commit(40, 'b');
const std::string manifest = "[kernels]\n\"o/norm\" = 1\n";

std::vector<cache::TreeFile> tree_of(const test::TempFolder& folder, const std::string& root) {
    std::vector<cache::TreeFile> tree;
    for (const std::string& path : base::list_files(folder / root)) {
        const fs::path file = folder / root / path;
        tree.push_back({path, fs::file_size(file),
                        cache::hash_file_as(file, cache::HashKind::git_sha1), std::nullopt,
                        std::nullopt});
    }
    return tree;
}

LockedKernel lock_snapshot(const World& world, const std::string& repo_id, const Pin& pin,
                           const std::string& folder, const std::string& commit) {
    LockedKernel kernel{repo_id, pin, "v1", commit, "", {}};
    const std::string root = world.snapshot(folder, commit);
    const auto tree = tree_of(world.folder, root);
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(world.folder / root / "build")) {
        names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
        kernel.variants.push_back(lock_variant(
            name, tree, world.folder.read(root + "/build/" + name + "/metadata.json"), name));
    }
    return kernel;
}

// o/norm@1 locked at old_commit, while the branch has moved on.
struct LockedWorld : World {
    Lock lock;

    LockedWorld() {
        for (const std::string& commit : {old_commit, new_commit}) {
            test::write_build(folder, snapshot("o--norm", commit) + "/build/torch-cpu", "a-norm",
                              "cpu");
        }
        add_ref("o--norm", "v1", new_commit);
        lock.set(lock_snapshot(*this, "o/norm", test::version(1), "o--norm", old_commit));
        save();
    }
    void save() { folder.write("project/twinkle.lock", lock_toml(lock)); }
    std::string file(const std::string& name) const {
        return snapshot("o--norm", old_commit) + "/build/torch-cpu/" + name;
    }
};

bool mentions(const std::vector<std::string>& lines, std::string_view words) {
    INFO(base::join(lines, "\n"));
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
        return line.find(words) != std::string::npos;
    });
}

}  // namespace

TEST_CASE("the locked commit is used, not what the branch is now") {
    LockedWorld world;
    world.options.lock = LockDemand::there;
    const Resolution resolution = world.resolve(manifest);
    REQUIRE(resolution.mapping.kernels.size() == 1);
    CHECK(resolution.mapping.kernels[0].commit == old_commit);
    CHECK(resolution.mapping.kernels[0].name == "o/norm@1");
    CHECK(resolution.warnings.empty());
    fs::remove(world.folder / "project/twinkle.lock");
    world.options.lock = LockDemand::none;
    CHECK(world.resolve(manifest).mapping.kernels[0].commit == new_commit);
}

TEST_CASE("a changed byte is refused, whichever hash the lock has of the file") {
    LockedWorld world;
    const std::string layers(test::norm_layers);
    for (const char* name : {"layers.py", "__init__.py", "metadata.json"}) {
        const std::string before = world.folder.read(world.file(name));
        std::string changed = before;
        changed.back() = changed.back() == '\n' ? ' ' : '\n';
        world.folder.write(world.file(name), changed);
        const auto error = world.fails(manifest);
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::verification);
        world.folder.write(world.file(name), before);
        CHECK_FALSE(world.fails(manifest));
    }
    // No digest covers this file, but the lock does.
    world.folder.write(world.file("metadata.json.sigstore"), "{}");
    const auto added = world.fails(manifest);
    REQUIRE(added);
    CHECK(added->code() == ErrorCode::verification);
    CHECK(added->details().why == "metadata.json.sigstore is not in the lock");
    world.lock.set(lock_snapshot(world, "o/norm", test::version(1), "o--norm", old_commit));
    world.save();
    CHECK_FALSE(world.fails(manifest));
    world.folder.write(world.file("metadata.json.sigstore"), "[]");
    CHECK(world.fails(manifest)->details().why.find("its blob id is") != std::string::npos);
}

TEST_CASE("what is missing is said with the command that gets it") {
    LockedWorld world;
    world.options.target = "torch=2.13,backend=cpu,os=linux";
    fs::remove(world.folder / world.file("layers.py"));
    const auto file = world.fails(manifest);
    REQUIRE(file);
    CHECK(file->code() == ErrorCode::not_found);
    const std::string command = "twinkle fetch --project " + (world.folder / "project").string() +
                                " --target torch=2.13,backend=cpu,os=linux";
    CHECK(file->details().hint.starts_with(command));
    fs::remove_all(world.folder / world.file(""));
    CHECK(world.fails(manifest)->details().what.find("the build torch-cpu") == 0);
    fs::remove_all(world.folder / world.snapshot("o--norm", old_commit));
    const auto snapshot = world.fails(manifest);
    CHECK(snapshot->code() == ErrorCode::not_found);
    CHECK(snapshot->details().hint.starts_with(command));
}

TEST_CASE("the best build of the lock is taken, not the best that happens to be there") {
    LockedWorld world;
    const std::string build = world.snapshot("o--norm", old_commit) + "/build/torch-cpu";
    auto& variants = world.lock.kernels[0].variants;
    auto better = variants[0];
    better.name = "torch213-cpu-x86_64-linux";
    variants.push_back(better);
    world.save();
    const auto error = world.fails(manifest);
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::not_found);
    CHECK(error->details().what.find("torch213-cpu-x86_64-linux") != std::string::npos);
}

TEST_CASE("a lock that does not fit is a warning, with --locked exit 7") {
    LockedWorld world;
    const std::string more = manifest + "mine = { path = \"k\" }\n";
    test::write_build(world.folder, "project/k", "a-norm", "cpu");
    CHECK(mentions(world.resolve(more).warnings, "the local kernel mine is not locked"));
    world.options.lock = LockDemand::there;
    CHECK(world.fails(more)->code() == ErrorCode::out_of_date);
    CHECK(world.fails("[kernels]\n\"o/norm\" = 2\n")->code() == ErrorCode::out_of_date);
    fs::remove(world.folder / "project/twinkle.lock");
    CHECK(world.fails(manifest)->code() == ErrorCode::out_of_date);
    world.options.lockfile = world.folder / "other.lock";
    CHECK(world.fails(manifest)->code() == ErrorCode::not_found);
    world.folder.write("other.lock", lock_toml(world.lock));
    CHECK_FALSE(world.fails(manifest));
}

TEST_CASE("local kernels are held against the lock") {
    World world;
    test::write_build(world.folder, "project/k/build/torch-cpu", "a-norm", "cpu");
    world.folder.write("project/plain/__init__.py", "");
    const std::string text = "[kernels]\nk = { path = \"k\" }\nplain = { path = \"plain\" }\n";
    Lock lock;
    const auto request = [&](const char* name) {
        return KernelRequest{name, {}, world.folder / "project" / name, "t:1:1"};
    };
    lock.set(lock_local_kernel(request("k"), world.folder / "project"));
    lock.set(lock_local_kernel(request("plain"), world.folder / "project"));
    world.folder.write("project/twinkle.lock", lock_toml(lock));
    world.options.lock = LockDemand::there;
    CHECK(world.resolve(text).mapping.kernels.size() == 2);
    world.folder.write("project/plain/__init__.py", "x = 1\n");
    for (const auto demand : {LockDemand::there, LockDemand::none}) {
        world.options.lock = demand;
        const auto changed = world.fails(text);
        REQUIRE(changed);
        CHECK(changed->code() ==
              (demand == LockDemand::none ? ErrorCode::verification : ErrorCode::out_of_date));
        CHECK(changed->details().hint.find("twinkle lock") != std::string::npos);
    }
}

TEST_CASE("kernels.lock pins commits where there is no other lock") {
    LockedWorld world;
    fs::remove(world.folder / "project/twinkle.lock");
    world.folder.write("project/kernels.lock", kernels_lock_json(world.lock));
    const Resolution resolution = world.resolve(manifest);
    CHECK(resolution.mapping.kernels[0].commit == old_commit);
    CHECK(mentions(resolution.warnings, "which has no hashes"));

    // The older format has one hash over the build.
    const auto tree = tree_of(world.folder, world.snapshot("o--norm", old_commit));
    const auto old_lock = [&](const std::string& hash) {
        return "[{\"repo_id\": \"o/norm\", \"sha\": \"" + old_commit +
               "\", \"variants\": {\"torch-cpu\": {\"hash\": \"" + hash +
               "\", \"hash_type\": \"git_lfs_concat\"}}}]";
    };
    const std::string hash = concat_hash("torch-cpu", tree);
    world.folder.write("project/kernels.lock", old_lock(hash));
    CHECK(mentions(world.resolve(manifest).warnings, "was not checked"));
    base::Json files = base::Json::object();
    for (const cache::TreeFile& file : tree) {
        files[file.path] = {{"size", file.size}, {"blob_id", file.blob_id}};
    }
    world.folder.write("hf/hub/kernels--o--norm/trees/" + old_commit + ".json",
                       base::Json{{"format_version", 1}, {"files", files}}.dump());
    CHECK_FALSE(mentions(world.resolve(manifest).warnings, "was not checked"));
    world.folder.write("project/kernels.lock", old_lock("sha256-" + std::string(64, '0')));
    CHECK(world.fails(manifest)->code() == ErrorCode::verification);
}

namespace {

void write_dependent(const World& world, const std::string& build,
                     const std::vector<std::string>& needs) {
    test::write_build(world.folder, build, "a-norm", "cpu");
    base::Json metadata = test::metadata_json("a-norm", "cpu");
    for (const std::string& repo_id : needs) {
        metadata["kernel-depends"].push_back({{"repo-id", repo_id}, {"version", 1}});
    }
    test::seal(world.folder, build, metadata);
}

}  // namespace

TEST_CASE("a kernel brings what it depends on, each once") {
    World world;
    const std::map<std::string, std::vector<std::string>> graph{
        {"norm", {"o/left", "o/right"}}, {"left", {"o/base"}}, {"right", {"o/base"}}, {"base", {}}};
    for (const auto& [name, needs] : graph) {
        write_dependent(world, world.snapshot("o--" + name, old_commit) + "/build/torch-cpu",
                        needs);
        world.add_ref("o--" + name, "v1", old_commit);
    }
    const Mapping mapping = world.resolve(manifest).mapping;
    std::vector<std::string> names;
    for (const MappedKernel& kernel : mapping.kernels) {
        names.push_back(kernel.name);
    }
    CHECK(names == std::vector<std::string>{"o/norm@1", "o/left@1", "o/base@1", "o/right@1"});
    fs::remove_all(world.folder / "hf/hub/kernels--o--base");
    const auto missing = world.fails(manifest);
    REQUIRE(missing);
    CHECK(missing->code() == ErrorCode::not_found);
    CHECK(missing->details().where == "o/left@1 depends on o/base@1");
}

TEST_CASE("dependencies that lead back are refused with the chain") {
    World world;
    for (const auto& [name, needs] : std::map<std::string, std::vector<std::string>>{
             {"norm", {"o/left"}}, {"left", {"o/norm"}}}) {
        write_dependent(world, world.snapshot("o--" + name, old_commit) + "/build/torch-cpu",
                        needs);
        world.add_ref("o--" + name, "v1", old_commit);
    }
    const auto error = world.fails(manifest);
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::refused);
    CHECK(error->details().why == "o/norm@1 → o/left@1 → o/norm@1");
}

TEST_CASE("a newer version that would fit is named") {
    LockedWorld world;
    world.options.target = "torch=2.13,backend=rocm71,arch=gfx942";
    const std::string cuda = "[kernels]\n\"o/gpu\" = 1\n";
    test::write_build(world.folder, world.snapshot("o--gpu", old_commit) + "/build/torch-cuda",
                      "a-norm", "cuda");
    test::write_build(world.folder, world.snapshot("o--gpu", new_commit) + "/build/torch-rocm",
                      "a-norm", "rocm");
    world.add_ref("o--gpu", "v1", old_commit);
    CHECK(world.fails(cuda)->details().hint.find("twinkle versions") == 0);
    world.add_ref("o--gpu", "v3", new_commit);
    CHECK(world.fails(cuda)->details().hint ==
          "version 3 has a build that fits (torch-rocm): twinkle add o/gpu@3");
}
