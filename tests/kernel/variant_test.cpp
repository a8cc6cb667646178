#include "kernel/variant.h"

#include <algorithm>
#include <random>

#include "catch.h"

using namespace twinkle;
using namespace twinkle::kernel;
using target::Target;

namespace {

Target cuda_target() {
    Target target;
    target.torch = target::Version{2, 10};
    target.cxx11 = true;
    target.backend = *target::parse_backend("cu130");
    return target;
}

bool accepts(const char* name, const Target& target, const char* device) {
    const auto variant = parse_variant(name);
    REQUIRE(variant);
    const Judgement judgement = judge_variant(*variant, target, device);
    CHECK_FALSE(judgement.reason.empty());
    CHECK(judgement.reason.find('\n') == std::string::npos);
    return judgement.accepted;
}

}  // namespace

TEST_CASE("the grammar of variants") {
    const auto torch = parse_variant("torch210-cxx11-cu128-x86_64-linux");
    REQUIRE(torch);
    CHECK(torch->framework == Framework::torch);
    CHECK(torch->version == target::Version{2, 10});
    CHECK(torch->cxx11 == true);
    CHECK(torch->backend.text() == "cu128");
    CHECK(torch->os == "linux");
    CHECK(parse_variant("torch29-metal-aarch64-darwin")->cxx11 == std::nullopt);
    CHECK(parse_variant("torch-stable-abi210-cpu-x86_64-linux")->framework ==
          Framework::stable_abi);
    CHECK(parse_variant("tvm-ffi01-cu129-aarch64-linux")->version == target::Version{0, 1});
    CHECK(parse_variant("torch-universal")->noarch_backend == "universal");
    CHECK(parse_variant("torch-npu")->framework == Framework::noarch);
    for (const char* wrong :
         {"", "torch", "torch-", "torch-x", "torch2-cpu-x86_64-linux", "torch29-cpu-x86_64",
          "torch29-cpu-x86_64-linux-x", "torch29-cxx14-cpu-x86_64-linux", "torch29--x86_64-linux",
          "torch2x-cpu-x86_64-linux", "torch29-cpu-riscv-linux", "tvm-ffi-cpu-x86_64-linux",
          "torch-stable-abi-cpu-x86_64-linux", "torch29-cuda-x86_64-linux", "TORCH-cpu",
          "tvm-ffi01-cxx11-cu129-x86_64-linux", "torch99999999999-cpu-x86_64-linux"}) {
        INFO(wrong);
        CHECK_FALSE(parse_variant(wrong));
    }
}

TEST_CASE("acceptance") {
    Target target = cuda_target();
    CHECK(accepts("torch210-cxx11-cu130-x86_64-linux", target, "cuda"));
    CHECK(accepts("torch210-cu130-x86_64-linux", target, "cuda"));
    CHECK_FALSE(accepts("torch210-cxx98-cu130-x86_64-linux", target, "cuda"));
    CHECK_FALSE(accepts("torch29-cxx11-cu130-x86_64-linux", target, "cuda"));
    CHECK_FALSE(accepts("torch210-cxx11-cu130-aarch64-linux", target, "cuda"));
    CHECK_FALSE(accepts("torch210-cxx11-cu130-x86_64-windows", target, "cuda"));
    CHECK_FALSE(accepts("torch210-cxx11-cu131-x86_64-linux", target, "cuda"));
    CHECK_FALSE(accepts("torch210-cxx11-cu129-x86_64-linux", target, "cuda"));
    CHECK(accepts("torch-stable-abi29-cu130-x86_64-linux", target, "cuda"));
    CHECK(accepts("torch-stable-abi210-cu130-x86_64-linux", target, "cuda"));
    CHECK_FALSE(accepts("torch-stable-abi211-cu130-x86_64-linux", target, "cuda"));
    CHECK_FALSE(accepts("tvm-ffi01-cu130-x86_64-linux", target, "cuda"));
    CHECK(accepts("torch-cuda", target, "cuda"));
    CHECK(accepts("torch-universal", target, "cuda"));
    CHECK_FALSE(accepts("torch-rocm", target, "cuda"));
    CHECK_FALSE(accepts("torch210-cpu-x86_64-linux", target, "cuda"));
    CHECK(accepts("torch210-cpu-x86_64-linux", target, "cpu"));
    CHECK_FALSE(accepts("torch-cpu", target, "rocm"));

    target.tvm_ffi = target::Version{0, 1};
    CHECK(accepts("tvm-ffi01-cu130-x86_64-linux", target, "cuda"));
    target.torch.reset();
    CHECK_FALSE(accepts("torch-stable-abi29-cu130-x86_64-linux", target, "cuda"));

    target.backend = *target::parse_backend("metal");
    target.os = "darwin";
    target.cpu = "aarch64";
    target.torch = target::Version{2, 10};
    CHECK_FALSE(accepts("torch210-metal-aarch64-darwin", target, "mps"));
    target.macos = target::Version{26, 0};
    CHECK(accepts("torch210-metal-aarch64-darwin", target, "mps"));
    target.backend = *target::parse_backend("cann83");
    CHECK(accepts("torch-npu", target, "npu"));
    target.backend = *target::parse_backend("rocm71");
    CHECK_FALSE(accepts("torch210-rocm70-aarch64-darwin", target, "rocm"));
}

TEST_CASE("preference is the same however the builds are listed") {
    const std::vector<std::string> ordered{"torch-stable-abi210-cu130-x86_64-linux",
                                           "torch-stable-abi210-cu128-x86_64-linux",
                                           "torch-stable-abi29-cu130-x86_64-linux",
                                           "torch210-cu130-x86_64-linux",
                                           "torch210-cu128-x86_64-linux",
                                           "torch210-cxx11-cu130-x86_64-linux",
                                           "torch210-cxx11-cu126-x86_64-linux",
                                           "tvm-ffi01-cu130-x86_64-linux",
                                           "torch-cuda",
                                           "torch-universal"};
    std::mt19937 random(3);
    auto names = ordered;
    for (int i = 0; i < 100; ++i) {
        std::shuffle(names.begin(), names.end(), random);
        std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
            return is_preferred(*parse_variant(a), *parse_variant(b));
        });
        REQUIRE(names == ordered);
    }
}
