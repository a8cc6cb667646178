#include "target/target.h"

#include "base/temp_folder.h"
#include "base/throws.h"
#include "catch.h"
#include "target/virtual_machine.h"

using namespace twinkle;
using namespace twinkle::target;
using test::error_of;

namespace {

Runtime runtime(const char* backend) {
    Runtime made;
    made.torch = {2, 13};
    made.backend = *parse_backend(backend);
    return made;
}

}  // namespace

TEST_CASE("a target is this machine with what is written changed") {
    test::VirtualMachine machine;
    const Target here = choose_target("here", {}, machine, runtime("cpu"));
    CHECK(here.text() == "torch=2.13,cxx11=1,backend=cpu,cpu=x86_64,os=linux");
    CHECK(here.devices() == std::vector<std::string>{"cpu"});
    CHECK(choose_target(std::nullopt, {}, machine, std::nullopt).torch == std::nullopt);

    const Target other = choose_target("torch=2.9.1,backend=cu130,arch=9.0,cxx11=0,macos=26", {},
                                       machine, runtime("cpu"));
    CHECK(other.text() ==
          "torch=2.9,cxx11=0,backend=cu130,arch=9.0,cpu=x86_64,os=linux,macos=26.0");
    CHECK(other.devices() == std::vector<std::string>{"cpu", "cuda"});
    CHECK(other.backend_for("cpu") == Backend{});
    CHECK(other.backend_for("cuda")->version == Version{13, 0});
    CHECK_FALSE(other.backend_for("rocm"));
    CHECK(other.capability() == 90);
    CHECK(choose_target("torch=none", {}, machine, runtime("cpu")).torch == std::nullopt);
    CHECK(machine.driver_asked == 0);
}

TEST_CASE("the driver is asked only where a CUDA backend needs its answer") {
    test::VirtualMachine machine;
    machine.nvidia = true;
    machine.driver = CudaDriver{{13, 1}, {{"H100", "9.0", 80}, {"L4", "8.9", 24}}};
    CHECK_FALSE(choose_target("here", {}, machine, runtime("cpu")).arch);
    CHECK_FALSE(choose_target("backend=cu130,arch=none", {}, machine, runtime("cpu")).arch);
    CHECK(machine.driver_asked == 0);
    CHECK(choose_target("here", {}, machine, runtime("cu130")).arch == "9.0");
    CHECK(machine.driver_asked == 1);
    CHECK(choose_target("here", {}, machine, std::nullopt).backend.text() == "cu131");
}

TEST_CASE("capabilities of AMD names") {
    Target target;
    for (const auto& [arch, expected] : std::vector<std::pair<std::string, int>>{
             {"gfx942", 94}, {"gfx90a", 90}, {"gfx1100", 110}, {"gfx1201", 120}}) {
        target.arch = arch;
        CHECK(target.capability() == expected);
    }
    target.arch = "gfxzz9";
    CHECK_FALSE(target.capability());
}

TEST_CASE("names of the manifest, and files of twinkle env") {
    test::VirtualMachine machine;
    const std::map<std::string, TargetSpec> named{{"prod", {{{"torch", "2.11"}}, "t.toml:3"}}};
    CHECK(choose_target("prod", named, machine, std::nullopt).torch == Version{2, 11});

    test::TempFolder folder;
    const Target target = choose_target(
        "torch=2.12,backend=rocm71,arch=gfx942:sramecc+,cpu=aarch64", {}, machine, std::nullopt);
    std::string json = R"({"schema": "twinkle.env/1", "gpus": [], "target": {)";
    for (const auto& [key, value] : target.to_map()) {
        json += (json.back() == '{' ? "\"" : ", \"") + key + "\": \"" + value + "\"";
    }
    const auto file = folder.write("there.json", json + "}}");
    const Target read = choose_target(file.string(), {}, machine, runtime("cu130"));
    CHECK(read.to_map() == target.to_map());
    CHECK(read.arch == "gfx942");
}

TEST_CASE("what is wrong in a target is said") {
    test::VirtualMachine machine;
    const auto fails = [&](const char* text) {
        return error_of([&] { choose_target(text, {}, machine, std::nullopt); });
    };
    CHECK(fails("torhc=2.13")->details().hint == "did you mean \"torch\"?");
    CHECK(fails("nowhere")->code() == ErrorCode::not_found);
    for (const char* text :
         {"torch=2", "torch=", "=", "torch=2.1,torch=2.2", "backend=cuda", "cpu=riscv", "os=plan9",
          "cxx11=2", "backend=cu130,arch=sm_90", "backend=rocm71,arch=9.0", "tvm-ffi=x", "macos=x",
          "torch=2.13,,backend=cpu"}) {
        INFO(text);
        REQUIRE(fails(text));
        CHECK(fails(text)->code() == ErrorCode::malformed);
    }
}
