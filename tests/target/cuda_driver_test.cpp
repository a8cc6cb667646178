#include "target/cuda_driver.h"

#include <cstdlib>

#include "base/temp_folder.h"
#include "catch.h"

using namespace twinkle;
using namespace twinkle::target;

namespace {

class Variable {
public:
    Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
    ~Variable() { ::unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    const char* name_;
};

}  // namespace

TEST_CASE("the driver lists GPUs of different kinds, without a toolkit") {
    const Variable gpus("FAKE_CUDA",
                        "NVIDIA H200,9.0,150000000000;Tesla T4,7.5,16000000000;broken,0.0,0;"
                        "NVIDIA RTX 6000,12.0,96000000000");
    const auto ask = GENERATE(&ask_cuda_driver, &ask_cuda_driver_aside);
    const auto driver = ask(TWINKLE_FAKE_LIBCUDA);
    REQUIRE(driver);
    CHECK(driver->version == Version{13, 1});
    REQUIRE(driver->gpus.size() == 3);  // without the one that tells nothing of itself
    CHECK(driver->gpus[0].name == "NVIDIA H200");
    CHECK(driver->gpus[0].arch == "9.0");
    CHECK(driver->gpus[0].memory_bytes == 150000000000);
    CHECK(driver->gpus[1].arch == "7.5");
    CHECK(driver->gpus[2].arch == "12.0");
}

TEST_CASE("a driver without a GPU is one, and one that does not start is none") {
    const auto ask = GENERATE(&ask_cuda_driver, &ask_cuda_driver_aside);
    const auto driver = ask(TWINKLE_FAKE_LIBCUDA);
    REQUIRE(driver);
    CHECK(driver->gpus.empty());
    for (const char* function : {"cuInit", "cuDriverGetVersion"}) {
        const Variable failing("FAKE_CUDA_FAILS", function);
        CHECK_FALSE(ask(TWINKLE_FAKE_LIBCUDA));
    }
    CHECK_FALSE(ask("/no/such/libcuda.so.1"));
    CHECK_FALSE(ask("libc.so.6"));  // a library, and no driver
}
