#include "target/machine.h"

#include "base/temp_folder.h"
#include "catch.h"
#include "target/cpu_info.h"
#include "target/rocm_topology.h"

using namespace twinkle;
using namespace twinkle::target;

TEST_CASE("cpuinfo of x86 and ARM") {
    const CpuFacts x86 = read_cpuinfo(
        "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu avx2 avx512f f16c\n\n"
        "processor\t: 1\nmodel name\t: other\nflags\t\t: sve\n");
    CHECK(x86.model == "AMD EPYC");
    CHECK(x86.features == std::vector<std::string>{"avx2", "avx512f", "f16c"});
    const CpuFacts arm = read_cpuinfo("processor : 0\nFeatures : fp asimd sve bf16\n");
    CHECK(arm.features == std::vector<std::string>{"asimd", "bf16", "sve"});
    CHECK(read_cpuinfo("").features.empty());
    CHECK(read_cpuinfo(": : :\n\n:").features.empty());
}

TEST_CASE("AMD GPUs are listed in the order of their nodes") {
    test::TempFolder folder;
    folder.write("0/properties", "cpu_cores_count 64\ngfx_target_version 0\n");
    folder.write("10/properties", "gfx_target_version 110000\n");
    folder.write("2/properties", "simd_count 304\ngfx_target_version 90402\n");
    folder.write("3/properties", "gfx_target_version 90010\n");
    const auto gpus = read_rocm_topology(folder.path());
    REQUIRE(gpus.size() == 3);
    CHECK(gpus[0].arch == "gfx942");
    CHECK(gpus[1].arch == "gfx90a");
    CHECK(gpus[2].arch == "gfx1100");
    CHECK(read_rocm_topology(folder / "none").empty());
}

TEST_CASE("this machine has its facts") {
    const Machine& machine = this_machine();
    CHECK(machine.os() == "linux");
    CHECK(machine.cpu().cores > 0);
    CHECK(machine.glibc() > Version{2, 0});
    CHECK(machine.executable().filename() == "target_tests");
    CHECK_FALSE(machine.environment("TWINKLE_NO_SUCH_VARIABLE"));
}
