#include "target/backend.h"

#include "catch.h"

using namespace twinkle::target;

TEST_CASE("versions") {
    CHECK(parse_version("2.13") == Version{2, 13});
    CHECK(parse_version("2.13.0+cpu") == Version{2, 13});
    CHECK(parse_version("2.13a0+git") == Version{2, 13});
    for (const char* wrong : {"", "2", "2.", ".1", "x.1", "2.x", "2.1x", "99999999999.1", "-1.2"}) {
        CHECK_FALSE(parse_version(wrong));
    }
    CHECK(Version{2, 9} < Version{2, 10});
}

TEST_CASE("backends round trip; the last digit is the minor version") {
    for (const char* name :
         {"cpu", "cu130", "cu118", "rocm71", "xpu20253", "cann83", "metal", "neuron", "tpu"}) {
        REQUIRE(parse_backend(name));
        CHECK(parse_backend(name)->text() == name);
    }
    CHECK(parse_backend("cu130")->version == Version{13, 0});
    CHECK(parse_backend("xpu20253")->version == Version{2025, 3});
    CHECK(parse_backend("cann83")->device() == "npu");
    CHECK(parse_backend("metal")->device() == "mps");
    for (const char* wrong : {"", "cu", "cu1", "cuda", "cpu1", "cu12.8", "rocm", "metal3", "cu013",
                              "cu9999999999999", "CPU"}) {
        INFO(wrong);
        CHECK_FALSE(parse_backend(wrong));
    }
}

TEST_CASE("devices") {
    CHECK(parse_device("metal") == "mps");
    CHECK(parse_device("npu") == "npu");
    CHECK_FALSE(parse_device("gpu"));
    CHECK(device_names() == "cpu, cuda, rocm, xpu, npu, mps, neuron, tpu");
}
