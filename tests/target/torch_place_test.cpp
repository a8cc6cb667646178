#include "target/torch_place.h"

#include "base/temp_folder.h"
#include "base/throws.h"
#include "catch.h"
#include "target/virtual_machine.h"

using namespace twinkle;
using namespace twinkle::target;
using test::error_of;

namespace {

struct Machines {
    test::TempFolder folder;
    test::VirtualMachine machine;
    Runtime runtime;

    Machines() {
        runtime.name = "torch2.13-cpu";
        runtime.torch = {2, 13};
        runtime.backend = *parse_backend("cpu");
    }

    // A LibTorch of a Python environment, or an unpacked one.
    void wheel(const std::string& place, const std::string& version, bool cuda = false) {
        folder.write(place + "/lib/libtorch.so", "");
        folder.write(place + "/version.py", "__version__ = '" + version + "'\ncuda = None\n");
        if (cuda) {
            folder.write(place + "/lib/libtorch_cuda.so", "");
        }
    }
    void unpacked(const std::string& place, const std::string& version) {
        folder.write(place + "/lib/libtorch.so", "");
        folder.write(place + "/build-version", version + "\n");
    }
    std::filesystem::path found() { return find_torch_lib(runtime, machine); }
};

const std::string packages = "/lib/python3.11/site-packages/torch";

}  // namespace

TEST_CASE("TWINKLE_TORCH names the LibTorch, by its folder or that of its libraries") {
    Machines on;
    on.unpacked("libtorch", "2.13.0+cpu");
    on.machine.variables["TWINKLE_TORCH"] = (on.folder / "libtorch").string();
    CHECK(on.found() == on.folder / "libtorch/lib");
    on.machine.variables["TWINKLE_TORCH"] = (on.folder / "libtorch/lib").string();
    CHECK(on.found() == on.folder / "libtorch/lib");
}

TEST_CASE("a LibTorch that is named must be there, and be the right one") {
    Machines on;
    on.unpacked("old", "2.11.0+cpu");
    on.wheel("gpu", "2.13.0+cu130", true);
    const auto named = [&](const std::string& place) {
        on.machine.variables["TWINKLE_TORCH"] = (on.folder / place).string();
        return error_of([&] { on.found(); });
    };
    CHECK(named("none")->code() == ErrorCode::not_found);
    CHECK(named("old")->code() == ErrorCode::refused);
    CHECK(named("old")->details().why.find("2.11.0+cpu") != std::string::npos);
    on.runtime.backend = *parse_backend("rocm63");
    CHECK(named("gpu")->details().why.find("CUDA") != std::string::npos);
}

TEST_CASE("a runtime serves the CPU and the CUDA builds of its version") {
    Machines on;
    on.wheel("gpu", "98.13.0+cu130", true);
    on.folder.write("plain/lib/libtorch.so", "");
    on.folder.write("plain/lib/libtorch_cuda.so", "");
    on.folder.write("plain/version.py",
                    "__version__ = '98.13.0'\ncuda: Optional[str] = '12.6'\nhip = None\n");
    on.unpacked("cpu", "98.13.1+cpu");
    on.unpacked("unknown", "");
    on.runtime.torch = {98, 13};
    const auto at = [&](const char* place) { return *read_libtorch(on.folder / place / "lib"); };
    CHECK(at("gpu").backend.text() == "cu130");
    CHECK(at("plain").backend.text() == "cu126");
    CHECK(at("cpu").backend.text() == "cpu");
    CHECK_FALSE(at("unknown").version);
    CHECK_FALSE(read_libtorch(on.folder / "gpu"));

    CHECK(fit(on.runtime, at("gpu")) == 1);
    CHECK(fit(on.runtime, at("cpu")) == 3);
    CHECK(with_libtorch(on.runtime, at("gpu")).backend.text() == "cu130");
    on.runtime.backend = *parse_backend("cu130");
    CHECK(fit(on.runtime, at("gpu")) == 3);
    CHECK(fit(on.runtime, at("plain")) == 2);
    CHECK(with_libtorch(on.runtime, at("cpu")).backend.text() == "cpu");
    CHECK(fit(on.runtime, at("unknown")) == 1);
    on.runtime.torch = {98, 14};
    CHECK(fit(on.runtime, at("gpu")) == 0);
}

TEST_CASE("the environment that twinkle is installed in comes before the active one") {
    Machines on;
    on.runtime.torch = {98, 1};
    on.wheel("own" + packages, "98.1.0");
    on.wheel("active" + packages, "98.1.2");
    on.machine.program = on.folder / "own/bin/twinkle";
    on.machine.variables["VIRTUAL_ENV"] = (on.folder / "active").string();
    CHECK(on.found() == on.folder / ("active" + packages + "/lib"));
    on.folder.write("own/pyvenv.cfg", "");
    CHECK(on.found() == on.folder / ("own" + packages + "/lib"));
}

TEST_CASE("the place it was built with, else the active environment") {
    Machines on;
    on.wheel("venv" + packages, "2.13.1+cpu");
    on.machine.variables["VIRTUAL_ENV"] = (on.folder / "venv").string();
    CHECK(on.found() == on.folder / ("venv" + packages + "/lib"));
    on.wheel("built", "2.13.0");
    on.runtime.torch_lib = on.folder / "built/lib";
    CHECK(on.found() == on.folder / "built/lib");
    // Another version has replaced it since.
    on.folder.write("built/version.py", "__version__ = '2.14.0'\n");
    CHECK(on.found() == on.folder / ("venv" + packages + "/lib"));
}

TEST_CASE("where there is none, every place is named with what is wrong there") {
    Machines on;
    on.runtime.torch = {99, 1};
    on.wheel("venv" + packages, "2.13.1+cpu");
    on.machine.variables["VIRTUAL_ENV"] = (on.folder / "venv").string();
    const auto error = error_of([&] { on.found(); });
    CHECK(error->code() == ErrorCode::not_found);
    CHECK(error->details().what.find("LibTorch 99.1") != std::string::npos);
    CHECK(error->details().why.find("it is LibTorch 2.13.1+cpu") != std::string::npos);
    CHECK(error->details().hint.find("TWINKLE_TORCH") != std::string::npos);
}
