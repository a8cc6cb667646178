#include "project/lock_files.h"

#include <algorithm>

#include "base/temp_folder.h"
#include "base/text.h"
#include "base/throws.h"
#include "catch.h"
#include "project/kernels_lock.h"
#include "project/lock_samples.h"

using namespace twinkle;
using namespace twinkle::project;
using test::error_of;
using test::locked_kernel;
using test::version;
namespace fs = std::filesystem;

namespace {

struct Project {
    test::TempFolder folder;
    Manifest load(std::string_view text, const char* name = "twinkle.toml") {
        return load_manifest(folder.write(name, text), folder / "presets");
    }
};

Lock two_kernels() {
    Lock lock;
    auto user = locked_kernel("a/user", version(1), "v1", 'a');
    user.variants[1].dependencies = {{"a/base", version(2)}};
    lock.set(user);
    lock.set(locked_kernel("a/base", version(2), "v2", 'b'));
    lock.set(locked_kernel("a/other", version(1), "v1", 'c'));
    return lock;
}

bool has_reason(const std::vector<std::string>& reasons, std::string_view words) {
    INFO(base::join(reasons, "\n"));
    return std::any_of(reasons.begin(), reasons.end(), [&](const std::string& reason) {
        return reason.find(words) != std::string::npos;
    });
}

constexpr std::string_view manifest = "[kernels]\n\"a/user\" = 1\n\"a/other\" = 1\n";

}  // namespace

TEST_CASE("kernels.lock is written where there is one, or pyproject.toml asks for kernels") {
    Project project;
    const Manifest own = project.load(manifest);
    CHECK_FALSE(lock_files(own, std::nullopt).kernels_lock);
    project.folder.write("pyproject.toml", "[project]\nname = \"x\"\n");
    CHECK_FALSE(lock_files(own, std::nullopt).kernels_lock);
    project.folder.write("kernels.lock", "[]");
    CHECK(lock_files(own, std::nullopt).kernels_lock == project.folder / "kernels.lock");
    fs::remove(project.folder / "kernels.lock");
    project.folder.write("pyproject.toml", "[tool.kernels.dependencies]\n\"a/user\" = 1\n");
    const LockFiles files = lock_files(own, std::nullopt);
    CHECK(files.kernels_lock == project.folder / "kernels.lock");
    CHECK(files.lock == project.folder / "twinkle.lock");
    CHECK_FALSE(lock_files(own, project.folder / "x.lock").kernels_lock);
}

TEST_CASE("kernels.lock has what pyproject.toml asks for, with its dependencies") {
    Project project;
    project.folder.write("pyproject.toml", "[tool.kernels.dependencies]\n\"a/user\" = 1\n");
    const Manifest own = project.load(manifest);
    const LockFiles files = lock_files(own, std::nullopt);
    CHECK(write_lock_files(two_kernels(), files).size() == 2);
    CHECK(write_lock_files(two_kernels(), files).empty());
    const std::string text = project.folder.read("kernels.lock");
    CHECK(text.find("a/base") != std::string::npos);
    CHECK(text.find("a/other") == std::string::npos);
    CHECK(text.back() == ']');
    CHECK(lock_file_mismatches(own, files).empty());
    CHECK(read_project_lock(files)->kernels.size() == 3);
    CHECK(read_project_lock(files)->file == files.lock);
}

TEST_CASE("every file can be the reason for exit 7") {
    Project project;
    project.folder.write("pyproject.toml", "[tool.kernels.dependencies]\n\"a/user\" = 1\n");
    const Manifest own = project.load(manifest);
    const LockFiles files = lock_files(own, std::nullopt);
    CHECK(has_reason(lock_file_mismatches(own, files), "there is no "));
    write_lock_files(two_kernels(), files);
    project.folder.write("kernels.lock", project.folder.read("kernels.lock") + "\n");
    CHECK(has_reason(lock_file_mismatches(own, files), "does not say the same as"));
    fs::remove(project.folder / "kernels.lock");
    CHECK(has_reason(lock_file_mismatches(own, files), "there is no "));
    write_lock_files(two_kernels(), files);
    project.folder.write("pyproject.toml", "[tool.kernels.dependencies]\n\"a/user\" = 3\n");
    CHECK(has_reason(lock_file_mismatches(own, lock_files(own, std::nullopt)),
                     "a/user@3 is in [tool.kernels.dependencies]"));
    const auto error = error_of([&] { fail_out_of_date(files, {"one", "two"}); });
    CHECK(error->code() == ErrorCode::out_of_date);
    CHECK(error->details().why == "one\n         two");
}

TEST_CASE("a project of the Python tool alone is pinned by kernels.lock, in both formats") {
    Project project;
    const Manifest own =
        project.load("[tool.kernels.dependencies]\n\"a/user\" = 1\n", "pyproject.toml");
    const LockFiles files = lock_files(own, std::nullopt);
    CHECK_FALSE(read_project_lock(files));
    project.folder.write("kernels.lock", kernels_lock_json(two_kernels()));
    const auto lock = read_project_lock(files);
    REQUIRE(lock);
    CHECK(lock->format == LockFormat::kernels);
    CHECK(lock_mismatches(own, *lock).empty());
    CHECK(lock->find("a/base", version(2))->commit == std::string(40, 'b'));

    project.folder.write("kernels.lock", "[{\"repo_id\": \"a/user\", \"sha\": \"" +
                                             std::string(40, 'd') + "\", \"variants\": {}}]");
    const auto old = read_project_lock(files);
    CHECK(old->format == LockFormat::kernels_old);
    CHECK(lock_mismatches(own, *old).empty());
    CHECK(old->find("a/user", version(1))->commit == std::string(40, 'd'));
    CHECK(old->find("a/base", version(2)) == nullptr);
}

TEST_CASE("the older format's hash: paths below the build, then raw hashes, by path") {
    const std::vector<cache::TreeFile> tree{
        {"build/torch-cpu/b.so", 1, std::string(40, '1'), std::string(64, '2'), std::nullopt},
        {"build/torch-cpu/a.py", 1, std::string(40, '3'), std::nullopt, std::nullopt},
        {"build/torch-cpu/x.pyc", 1, std::string(40, '4'), std::nullopt, std::nullopt},
        {"build/torch-cuda/a.py", 1, std::string(40, '5'), std::nullopt, std::nullopt}};
    CHECK(concat_hash("torch-cpu", tree) ==
          "sha256-fc73eca856aca3b8efd055028dbbe80609a971938aeda9e785c885a324e6a588");
}
