// Kernels without a model: operators and functions of their packages, called from C++.

#include "api/package.h"

#include <thread>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
namespace fs = std::filesystem;
using tests::package;

namespace {

const std::string init = R"(
import torch
from .helpers import scale

SHIFT = 10.0

def twice(x: torch.Tensor, factor: float = 2.0, *, shifted: bool = False) -> torch.Tensor:
    y = scale(x, factor)
    if shifted:
        y = y + SHIFT
    return y

def into(out: torch.Tensor, x) -> None:
    out.copy_(x * 3)

def nothing_for_us(x):
    return x.numpy()

__all__ = ["twice", "into", "nothing_for_us"]
)";

fs::path made(const tests::Folder& folder) {
    const fs::path path = package(folder.path() / "my-kernel", tests::adds("Add", "1"), init);
    tests::write_file(path / "helpers.py", "def scale(x, by: float):\n    return x * by\n");
    return path;
}

template <class Call>
Error error_of(const Call& call) {
    try {
        call();
    } catch (const Error& error) {
        return error;
    }
    throw std::runtime_error("no error");
}

fs::path bundled_pack() {
    const fs::path builds = fs::path(TWINKLE_BINARY_DIR) / "lib/twinkle/kernels/twinkle-pack";
    REQUIRE(fs::exists(builds));
    return builds;
}

}  // namespace

TEST_CASE("functions of a package run without Python, with defaults and keywords") {
    const tests::Folder folder;
    const Kernel kernel = get_local_kernel(made(folder));
    CHECK(kernel.name() == "my-kernel");
    CHECK(kernel.layers() == std::vector<std::string>{"Add"});
    const at::Tensor x = torch::arange(4, torch::kFloat32);
    const at::Tensor y = kernel.function("twice")(x);
    CHECK(at::equal(y, x * 2));
    const at::Tensor z = kernel.function("twice")(x, 3);  // an int for a float
    CHECK(at::equal(z, x * 3));
    const at::Tensor shifted = kernel.function("twice").call({x}, {{"shifted", true}});
    CHECK(at::equal(shifted, x * 2 + 10));
    const at::Tensor half = kernel.function("twice")(x.to(torch::kHalf));
    CHECK(half.dtype() == torch::kHalf);
    at::Tensor out = torch::empty_like(x);
    CHECK(kernel.function("into")(out, x).value.isNone());
    CHECK(at::equal(out, x * 3));
    const at::Tensor helped = kernel.function("helpers.scale")(x, 0.5);
    CHECK(at::equal(helped, x * 0.5));
}

TEST_CASE("what a package offers, as it is written") {
    const tests::Folder folder;
    std::vector<std::string> signatures;
    for (const FunctionInfo& function : get_local_kernel(made(folder)).functions()) {
        signatures.push_back(function.signature());
    }
    std::sort(signatures.begin(), signatures.end());
    REQUIRE(signatures.size() == 4);  // with what it imports from its modules
    CHECK(signatures[0] == "into(out: torch.Tensor, x) -> None");
    CHECK(signatures[3] ==
          "twice(x: torch.Tensor, factor: float = 2.0, *, shifted: bool = False) -> torch.Tensor");
}

TEST_CASE("what cannot be called says why, and what there is") {
    const tests::Folder folder;
    const Kernel kernel = get_local_kernel(made(folder));
    const at::Tensor x = torch::ones({2});
    const Error unknown = error_of([&] { kernel.function("twic"); });
    CHECK(unknown.code() == ErrorCode::not_found);
    CHECK_THAT(unknown.what(), ContainsSubstring("there are: ") && ContainsSubstring("twice"));
    const Error beyond = error_of([&] { kernel.function("nothing_for_us")(x); });
    CHECK(beyond.code() == ErrorCode::refused);
    CHECK_THAT(beyond.what(), ContainsSubstring("__init__.py"));
    CHECK(error_of([&] { kernel.function("twice")(); }).code() == ErrorCode::refused);
    const Error shapes =
        error_of([&] { kernel.function("into")(torch::ones({2}), torch::ones({3})); });
    CHECK(shapes.code() == ErrorCode::failed);
    CHECK(error_of([&] { kernel.op("none"); }).code() == ErrorCode::not_found);
    CHECK(error_of([] { get_local_kernel("/nothing/here"); }).code() == ErrorCode::not_found);
}

TEST_CASE("operators of the bundled kernels") {
    const Kernel pack = get_local_kernel(bundled_pack());
    const auto names = pack.operators();
    REQUIRE(std::find(names.begin(), names.end(), "silu_mul") != names.end());
    const at::Tensor a = torch::randn({3, 16});
    const at::Tensor b = torch::randn({3, 16});
    const at::Tensor y = pack.op("silu_mul")(a, b);
    CHECK(at::allclose(y, at::silu(a) * b, 1e-5, 1e-6));
    const Error bad = error_of([&] { pack.op("silu_mul")(a); });
    CHECK(bad.code() == ErrorCode::malformed);
    CHECK_THAT(bad.what(), ContainsSubstring("silu_mul"));
    CHECK(error_of([&] { pack.op("silu_mul")(a, torch::randn({5, 7})); }).code() ==
          ErrorCode::failed);
    // Loading the same build again gives the same kernel.
    const std::size_t loaded = get_loaded_kernels().size();
    const Kernel again = get_local_kernel(bundled_pack());
    CHECK(again.build().build_id() == pack.build().build_id());
    CHECK(get_loaded_kernels().size() == loaded);
}

TEST_CASE("an operator that no string of its library shows") {
    const tests::Folder folder;
    const fs::path build = folder.path() / "build" / "torch-universal";
    tests::package(build, tests::adds("Add", "1"));
    tests::write_file(build / "metadata.json",
                      R"({"id": "_split_1", "name": "split", "version": 1, "license": "MIT",
                          "python-depends": [], "backend": {"type": "cpu"}})");
    fs::copy_file(SPLIT_OPERATOR, build / "_split_1.so");
    const Kernel kernel = get_local_kernel(folder.path());
    CHECK(kernel.build().operators.empty());
    CHECK(kernel.operators() == std::vector<std::string>{"split_copy"});
    const at::Tensor x = torch::randn({3, 4});
    CHECK(torch::equal(kernel.op("split_copy")(x), x));
}

TEST_CASE("whether there is a kernel: a folder of LOCAL_KERNELS is one") {
    const tests::Folder folder;
    tests::package(folder.path() / "mine", tests::adds("Norm", "7"));
    Registry registry;
    registry.set_hub({.get = {}, .has = [](const WantedKernel&) { return false; }});
    const KernelOptions options{.version = 1, .registry = &registry};
    CHECK_FALSE(has_kernel("acme/norm", options));
    const tests::Variable local("LOCAL_KERNELS", "acme/norm=" + (folder.path() / "mine").string());
    CHECK(has_kernel("acme/norm", options));
}

TEST_CASE("versions of one repository side by side, from the cache") {
    const tests::Folder folder;
    const tests::Variable cache("KERNELS_CACHE", folder.path().string());
    const auto cached = [&](const char* ref, char digit) {
        tests::cached_kernel(folder.path(), "acme", "tool", ref, digit, tests::adds("Add", "1"),
                             std::string("def which(x):\n    return x + ") + digit + "\n");
    };
    cached("v1", '1');
    cached("v2", '2');
    cached("v0.3.0", '3');
    CHECK(has_kernel("acme/tool", {.version = 1}));
    CHECK_FALSE(has_kernel("acme/tool", {.version = 9}));
    CHECK_FALSE(has_kernel("acme/other", {.version = 1}));
    const Kernel one = get_kernel("acme/tool", {.version = 1, .user_agent = "my-server/2.1"});
    const Kernel two = get_kernel("acme/tool", {.version = 2});
    const Kernel release = get_kernel("acme/tool", {.version = ">=0.2,<0.4"});
    const Kernel exact = get_kernel("acme/tool", {.revision = std::string(40, '2')});
    const at::Tensor x = torch::zeros({1});
    const auto value = [&](const Kernel& kernel) {
        const at::Tensor y = kernel.function("which")(x);
        return y.item<double>();
    };
    CHECK(value(one) == 1);
    CHECK(value(two) == 2);
    CHECK(value(release) == 3);
    CHECK(value(exact) == 2);
    CHECK(one.build().commit == std::string(40, '1'));
    std::size_t of_acme = 0;
    for (const Kernel& kernel : get_loaded_kernels()) {
        of_acme += kernel.build().repo_id == "acme/tool" ? 1 : 0;
    }
    CHECK(of_acme == 3);
    const Error missing = error_of([] { get_kernel("acme/tool", {.version = 9}); });
    CHECK(missing.code() == ErrorCode::not_found);
    CHECK_THAT(missing.what(), ContainsSubstring("twinkle fetch"));
    CHECK(error_of([] { get_kernel("no name"); }).code() == ErrorCode::malformed);
    CHECK(error_of([] { get_kernel("a/b", {.version = 1, .revision = "x"}); }).code() ==
          ErrorCode::malformed);
    CHECK(error_of([] { get_kernel("a/b", {.device = "gpu"}); }).code() == ErrorCode::malformed);
}

TEST_CASE("a lock says what is meant") {
    const tests::Folder folder;
    const tests::Variable cache("KERNELS_CACHE", (folder.path() / "hub").string());
    tests::cached_kernel(folder.path() / "hub", "acme", "tool", "v1", '1', tests::adds("Add", "1"),
                         "def which(x):\n    return x + 1\n");
    // The branch has moved since it was locked.
    tests::cached_kernel(folder.path() / "hub", "acme", "tool", "v1", '5', tests::adds("Add", "1"),
                         "def which(x):\n    return x + 5\n");
    const std::string commit(40, '1');
    const auto lock = folder.write(
        "kernel.lock", R"([{"repo_id": "acme/tool", "sha": ")" + commit + R"(", "variants": {}}])");
    const auto of = [](const Kernel& kernel) { return kernel.build().commit; };
    CHECK(of(get_kernel("acme/tool", {.version = 1})) == std::string(40, '5'));
    CHECK(of(get_locked_kernel("acme/tool", {.lockfile = lock})) == commit);
    CHECK(of(load_kernel(lock.string())) == commit);
    CHECK(of(load_kernel("acme/tool", {.lockfile = lock})) == commit);
    Registry registry;
    registry.use_lock(lock);
    CHECK(of(get_locked_kernel("acme/tool", {.registry = &registry})) == commit);
    const Error other = error_of([&] { load_kernel("acme/other", {.lockfile = lock}); });
    CHECK(other.code() == ErrorCode::not_found);
    CHECK_THAT(other.what(), ContainsSubstring("acme/tool"));
    CHECK(error_of([] { get_locked_kernel("acme/tool"); }).code() == ErrorCode::malformed);
    CHECK(error_of([&] { load_kernel((folder.path() / "no.lock").string()); }).code() ==
          ErrorCode::not_found);
}

TEST_CASE("one kernel from many threads") {
    const tests::Folder folder;
    const fs::path path = made(folder);
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&, i] {
            const Kernel kernel = get_local_kernel(path);
            for (int round = 0; round < 20; ++round) {
                const at::Tensor x = torch::full({4}, i);
                const at::Tensor y = i % 2 == 0 ? kernel.function("twice")(x)
                                                : kernel.function("twice")(x, round * 1.0);
                right += at::equal(y, x * (i % 2 == 0 ? 2.0 : round * 1.0)) ? 1 : 0;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(right == 160);
}
