#include "kernel/build.h"

#include "base/sha256.h"
#include "base/throws.h"
#include "catch.h"
#include "kernel/digest.h"
#include "kernel/kernel_folder.h"
#include "kernel/versions.h"

using namespace twinkle;
using namespace twinkle::kernel;
using test::error_of;
using test::TempFolder;

TEST_CASE("the three kinds of kernel folders") {
    TempFolder folder;
    test::write_build(folder, "repo/build/torch-cpu", "a-norm", "cpu");
    folder.write("repo/build/notes/x", "");
    folder.write("plain/__init__.py", "");
    folder.write("none/file", "");
    CHECK(open_kernel_folder(folder / "repo").kind == FolderKind::repository);
    CHECK(open_kernel_folder(folder / "repo").variants ==
          std::vector<std::string>{"notes", "torch-cpu"});
    CHECK(open_kernel_folder(folder / "repo/build").variants ==
          std::vector<std::string>{"torch-cpu"});
    CHECK(open_kernel_folder(folder / "repo/build/torch-cpu").kind == FolderKind::build);
    CHECK(open_kernel_folder(folder / "plain").kind == FolderKind::package);
    CHECK(error_of([&] { open_kernel_folder(folder / "none"); })->code() == ErrorCode::malformed);
    CHECK(error_of([&] { open_kernel_folder(folder / "gone"); })->code() == ErrorCode::not_found);
}

TEST_CASE("a build is read whole: hashes, sources, operators") {
    TempFolder folder;
    folder.write("b/_k.so", base::read_file("/proc/self/exe", "program", 1u << 30));
    test::write_build(folder, "b", "twinkle-ns", "cpu");
    folder.write("b/__pycache__/later.pyc", "");
    const Build build = read_build(folder / "b");
    REQUIRE(build.metadata);
    std::vector<std::string> paths;
    for (const MappedFile& file : build.files) {
        paths.push_back(file.path);
        CHECK(file.sha256 == base::hash_file(folder / "b" / file.path).sha256);
    }
    CHECK(paths == std::vector<std::string>{"__init__.py", "_k.so", "layers.py", "metadata.json"});
    CHECK(build.sources.at("layers.py") == test::norm_layers);
    CHECK_FALSE(build.operators.empty());
}

TEST_CASE("older builds have their package in a folder of its name") {
    TempFolder folder;
    folder.write("b/a_norm/__init__.py", "");
    folder.write("b/a_norm/layers.py", "x");
    test::seal(folder, "b", test::metadata_json("a-norm", "cpu"), base::DigestKind::sha512);
    const Build build = read_build(folder / "b");
    CHECK(build.package == folder / "b/a_norm");
    CHECK(build.sources.contains("layers.py"));
    std::filesystem::remove(folder / "b/a_norm/__init__.py");
    test::seal(folder, "b", test::metadata_json("a-norm", "cpu"));
    CHECK(error_of([&] { read_build(folder / "b"); })->code() == ErrorCode::malformed);
}

TEST_CASE("every violation of a digest is listed, missing and differing before unknown") {
    TempFolder folder;
    folder.write("b/gone.txt", "x");
    test::write_build(folder, "b", "a-norm", "cpu");
    std::filesystem::remove(folder / "b/gone.txt");
    folder.write("b/layers.py", "changed");
    folder.write("b/added.py", "");
    const auto error = error_of([&] { read_build(folder / "b"); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::verification);
    const std::string why = error->details().why;
    const auto missing = why.find("gone.txt is missing"), differs = why.find("layers.py differs"),
               unknown = why.find("added.py is not in the digest");
    CHECK(missing < differs);
    CHECK(differs < unknown);
    CHECK(unknown != std::string::npos);
}

TEST_CASE("a plain package needs nothing but its sources") {
    TempFolder folder;
    folder.write("p/__init__.py", "");
    folder.write("p/layers.py", test::norm_layers);
    const Build build = read_build(folder / "p");
    CHECK_FALSE(build.metadata);
    CHECK(build.files.size() == 2);
    CHECK(build.package == folder / "p");
}

TEST_CASE("builds are listed in order of preference, each with its reason") {
    TempFolder folder;
    const std::string builds = "repo/build/";
    for (const char* name : {"torch210-cxx11-cu130-x86_64-linux", "torch210-cpu-x86_64-linux",
                             "torch-stable-abi29-cu128-x86_64-linux"}) {
        auto metadata = test::metadata_json(
            "a-norm", std::string(name).find("cpu") == std::string::npos ? "cuda" : "cpu");
        metadata["backend"]["archs"] = {"8.0"};
        folder.write(builds + name + "/metadata.json", metadata.dump());
    }
    folder.write(builds + "stray/x", "");
    target::Target target;
    target.torch = target::Version{2, 10};
    target.cxx11 = true;
    target.backend = *target::parse_backend("cu130");
    target.arch = "8.6";

    const auto choices = list_variants(folder / "repo", target);
    REQUIRE(choices.size() == 4);
    CHECK(choices[0].name == "torch210-cxx11-cu130-x86_64-linux");
    CHECK(choices[0].preferred);
    CHECK(choices[1].name == "torch210-cpu-x86_64-linux");
    CHECK(choices[1].device == "cpu");
    CHECK(choices[1].for_cpu);
    CHECK_FALSE(choices[1].accepted);
    CHECK(choices[2].reason == "it is for CUDA 12.8, the target has 13.0");
    CHECK(choices[3].reason == "its name is not that of a build variant");

    target.arch = "9.0";
    const auto elsewhere = list_variants(folder / "repo", target, "cuda");
    CHECK_FALSE(elsewhere[0].accepted);
    CHECK(list_variants(folder / "repo", target, "cpu")[0].preferred);

    folder.write(builds + "torch210-cxx11-cu130-x86_64-linux/metadata.json", "{");
    bool broken = false;
    for (const VariantChoice& choice : list_variants(folder / "repo", target, "cuda")) {
        broken = broken || choice.broken;
    }
    CHECK(broken);
}
