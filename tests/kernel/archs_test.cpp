#include "kernel/archs.h"

#include "catch.h"

using namespace twinkle::kernel;
using twinkle::target::BackendKind;

TEST_CASE("CUDA architectures") {
    CHECK(cuda_arch_supports("9.0", {9, 0}) == true);
    CHECK(cuda_arch_supports("8.0", {8, 9}) == true);
    CHECK(cuda_arch_supports("8.9", {8, 6}) == false);
    CHECK(cuda_arch_supports("9.0", {10, 0}) == false);
    CHECK(cuda_arch_supports("9.0+PTX", {12, 0}) == true);
    CHECK(cuda_arch_supports("9.0+PTX", {8, 9}) == false);
    CHECK(cuda_arch_supports("9.0a", {9, 0}) == true);
    CHECK(cuda_arch_supports("9.0a", {9, 1}) == false);
    CHECK(cuda_arch_supports("9.0a+PTX", {12, 0}) == false);
    CHECK(cuda_arch_supports("10.0f", {10, 3}) == true);
    CHECK(cuda_arch_supports("10.0f", {11, 0}) == false);
    for (const char* unknown : {"", "sm_90", "9", "9.", ".0", "9.0x", "9.0.1", "-9.0", "9.0+ptx"}) {
        INFO(unknown);
        CHECK_FALSE(cuda_arch_supports(unknown, {9, 0}));
    }
}

TEST_CASE("lists of architectures; what is not understood decides nothing") {
    using Archs = std::vector<std::string>;
    CHECK(archs_support(Archs{"8.0", "9.0"}, BackendKind::cuda, "9.0"));
    CHECK_FALSE(archs_support(Archs{"8.0", "sm_x"}, BackendKind::cuda, "9.0"));
    CHECK(archs_support(Archs{"sm_x"}, BackendKind::cuda, "9.0"));
    CHECK(archs_support(Archs{}, BackendKind::cuda, "9.0"));
    CHECK(archs_support(Archs{"gfx90a", "gfx942"}, BackendKind::rocm, "gfx942:sramecc+:xnack-"));
    CHECK_FALSE(archs_support(Archs{"gfx90a"}, BackendKind::rocm, "gfx942"));
    CHECK(archs_support(Archs{"9.0"}, BackendKind::cpu, "x"));
}
