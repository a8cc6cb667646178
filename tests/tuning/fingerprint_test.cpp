#include "tuning/fingerprint.h"

#include "catch.h"
#include "target/virtual_machine.h"

using namespace twinkle;
using tuning::environment_of;

TEST_CASE("a CPU is its model, its instruction sets and the threads that compute") {
    test::VirtualMachine machine;
    const auto environment = environment_of("cpu", machine, {.threads = 2});
    CHECK(base::json_line(environment.facts()) ==
          R"({"arch":"x86_64","device":"cpu","features":["avx2"],"model":"virtual","threads":2})");
    CHECK(environment.id().size() == 16);
    CHECK(environment == environment_of("cpu", machine, {.threads = 2, .cuda = "13.0"}));
    CHECK_FALSE(environment == environment_of("cpu", machine, {.threads = 4}));
    CHECK(environment_of("cpu", machine, {}) == environment_of("cpu", machine, {.threads = 4}));
}

TEST_CASE("GPUs are a set, with driver and CUDA") {
    test::VirtualMachine machine;
    machine.nvidia = true;
    machine.driver = {{13, 0}, {{"H200", "9.0", 1}, {"A100", "8.0", 2}, {"H200", "9.0", 1}}};
    const auto environment = environment_of("cuda", machine, {.cuda = "13.0"});
    CHECK(base::json_line(environment.facts()) ==
          R"({"arch":"x86_64","cuda":"13.0","device":"cuda","driver":"13.0","gpus":[)"
          R"({"arch":"8.0","count":1,"memory":2,"name":"A100"},)"
          R"({"arch":"9.0","count":2,"memory":1,"name":"H200"}]})");
    std::swap(machine.driver->gpus[0], machine.driver->gpus[1]);
    CHECK(environment == environment_of("cuda", machine, {.threads = 8, .cuda = "13.0"}));
    machine.driver->version = {12, 8};
    CHECK_FALSE(environment == environment_of("cuda", machine, {.cuda = "13.0"}));
}

TEST_CASE("a machine without a driver does not ask for one") {
    test::VirtualMachine machine;
    CHECK(environment_of("cuda", machine, {}).facts()["gpus"].empty());
    CHECK(machine.driver_asked == 0);
    machine.amd = {{"MI300", "gfx942", 3}};
    CHECK(environment_of("rocm", machine, {.rocm = "7.1"}).facts()["gpus"].size() == 1);
}

TEST_CASE("a candidate is its build and the content of its configuration") {
    const auto id = tuning::candidate_id("build", {{"a", 1}, {"b", 2}});
    CHECK(id.size() == 32);
    CHECK(id == tuning::candidate_id("build", {{"b", 2}, {"a", 1}}));
    CHECK(id != tuning::candidate_id("build", {{"a", 2}, {"b", 1}}));
    CHECK(id != tuning::candidate_id("another", {{"a", 1}, {"b", 2}}));
}
