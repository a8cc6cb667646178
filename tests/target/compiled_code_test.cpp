#include "target/compiled_code.h"

#include "catch.h"

using namespace twinkle::target;

namespace {

using Lines = std::vector<std::string>;
const Lines with_avx512{"avx2", "avx512bw", "avx512dq", "avx512f", "avx512vl", "f16c", "fma"};

Target gpu_machine(const std::string& arch) {
    Target target;
    target.backend = *parse_backend("cu130");
    target.arch = arch;
    return target;
}

CompiledFor cpu_code(Lines isa) {
    return {"cpu", "linux", "x86_64", std::move(isa), ""};
}

}  // namespace

TEST_CASE("code for the CPU needs its instruction sets") {
    const Target here;
    CHECK(reasons_against(cpu_code({"AVX512"}), here, with_avx512).empty());
    CHECK(reasons_against(cpu_code({"AVX2"}), here, with_avx512).empty());
    CHECK(reasons_against(cpu_code({}), here, Lines{}).empty());
    CHECK(reasons_against(cpu_code({"INVALID_VEC_ISA"}), here, Lines{}).empty());
    CHECK(reasons_against(cpu_code({"AVX512", "AVX512_VNNI"}), here, with_avx512) ==
          Lines{"it is compiled for AVX512_VNNI, and the CPU has no avx512_vnni"});
    CHECK(reasons_against(cpu_code({"AVX2"}), here, Lines{"fma"}) ==
          Lines{"it is compiled for AVX2, and the CPU has no avx2, f16c"});
    CHECK(reasons_against(cpu_code({"AVX9000"}), here, with_avx512).size() == 1);
    CHECK(reasons_against(cpu_code({"AVX512"}), here, std::nullopt).empty());
}

TEST_CASE("code for another machine") {
    Target arm;
    arm.cpu = "aarch64";
    CHECK(reasons_against(cpu_code({"AVX2"}), arm, Lines{"asimd"}) ==
          Lines{"it is compiled for x86_64, not aarch64"});
    CompiledFor windows = cpu_code({});
    windows.os = "win32";
    CHECK(reasons_against(windows, Target{}, Lines{}) ==
          Lines{"it is compiled for win32, not linux"});
    CHECK(reasons_against({}, Target{}, Lines{}).empty());
}

TEST_CASE("code for GPUs needs one of its kind") {
    const CompiledFor code{"cuda", "linux", "x86_64", {}, "86"};
    CHECK(reasons_against(code, gpu_machine("8.6"), std::nullopt).empty());
    CHECK(reasons_against(code, gpu_machine("8.9"), std::nullopt).empty());
    CHECK(reasons_against(code, gpu_machine("8.0"), std::nullopt) ==
          Lines{"its GPU code is for compute capability 8.6, and the GPU has 8.0"});
    CHECK(reasons_against(code, gpu_machine("9.0"), std::nullopt).size() == 1);
    CHECK(reasons_against(code, Target{}, std::nullopt) ==
          Lines{"it is compiled for cuda, which the LibTorch there has not: it has cpu"});
}
