#include "target/runtime.h"

#include "base/temp_folder.h"
#include "base/throws.h"
#include "catch.h"
#include "target/virtual_machine.h"

using namespace twinkle;
using namespace twinkle::target;
using test::error_of;

namespace {

std::string description(const std::string& torch, const std::string& backend) {
    return R"({"schema": "twinkle.runtime/1", "torch": ")" + torch + R"(", "backend": ")" +
           backend +
           R"(", "cxx11": true, "torch_lib": "/t/lib", "worker": "w", "library": "l.so"})";
}

struct Installed {
    test::TempFolder folder;
    test::VirtualMachine machine;
    Installed() {
        machine.program = folder / "bin/twinkle";
        for (const auto& [torch, backend] :
             std::vector<std::pair<std::string, std::string>>{{"97.9.1", "cpu"},
                                                              {"97.13.0", "cpu"},
                                                              {"97.13.0", "cu130"},
                                                              {"97.13.0", "cu128"}}) {
            folder.write("libexec/twinkle/torch" + torch + "-" + backend + "/runtime.json",
                         description(torch, backend));
        }
        folder.write("libexec/twinkle/other/file", "");
    }
};

}  // namespace

TEST_CASE("the newest runtime is chosen, with the backend of the machine") {
    Installed on;
    CHECK(choose_runtime(on.machine)->name == "torch97.13.0-cpu");
    on.machine.nvidia = true;
    const auto chosen = choose_runtime(on.machine);
    CHECK(chosen->name == "torch97.13.0-cu130");
    CHECK(chosen->worker == on.folder / "libexec/twinkle/torch97.13.0-cu130/w");
    CHECK(chosen->torch_lib == "/t/lib");
    CHECK(on.machine.driver_asked == 0);
}

TEST_CASE("the LibTorch of the environment decides which runtime is used") {
    Installed on;
    const auto environment = [&](const std::string& version, bool cuda) {
        const std::string torch = "venv/lib/python3.12/site-packages/torch";
        on.folder.write(torch + "/lib/libtorch.so", "");
        on.folder.write(torch + "/version.py", "__version__ = '" + version + "'\n");
        if (cuda) {
            on.folder.write(torch + "/lib/libtorch_cuda.so", "");
        }
        on.machine.variables["VIRTUAL_ENV"] = (on.folder / "venv").string();
        return on.folder / (torch + "/lib");
    };
    const auto lib = environment("97.9.0+cpu", false);
    CHECK(choose_runtime(on.machine)->name == "torch97.9.1-cpu");
    CHECK(choose_runtime(on.machine)->torch_lib == lib);
    environment("97.11.0", false);  // none serves it: the newest says so when it is started
    CHECK(choose_runtime(on.machine)->name == "torch97.13.0-cpu");
    CHECK(choose_runtime(on.machine)->torch_lib == "/t/lib");
    environment("97.13.0+cu128", true);
    CHECK(choose_runtime(on.machine)->name == "torch97.13.0-cu128");
    // Its runtime was built with another build of the version: the kernels are chosen for this one.
    environment("97.9.2+cu126", true);
    CHECK(choose_runtime(on.machine)->name == "torch97.9.1-cpu");
    CHECK(choose_runtime(on.machine)->backend.text() == "cu126");
    // TWINKLE_TORCH counts more than the environment, also where no runtime serves it.
    on.folder.write("named/lib/libtorch.so", "");
    on.folder.write("named/build-version", "97.13.0+cpu\n");
    on.machine.variables["TWINKLE_TORCH"] = (on.folder / "named").string();
    CHECK(choose_runtime(on.machine)->name == "torch97.13.0-cpu");
}

TEST_CASE("TWINKLE_RUNTIME picks one, TWINKLE_LIBEXEC moves them all") {
    Installed on;
    on.machine.variables["TWINKLE_RUNTIME"] = "torch97.9.1-cpu";
    CHECK(choose_runtime(on.machine)->torch == Version{97, 9});
    on.machine.variables["TWINKLE_RUNTIME"] = "torch3";
    const auto error = error_of([&] { choose_runtime(on.machine); });
    CHECK(error->code() == ErrorCode::not_found);
    CHECK(error->details().why.find("torch97.13.0-cu130") != std::string::npos);

    on.machine.variables = {{"TWINKLE_LIBEXEC", (on.folder / "elsewhere").string()}};
    CHECK_FALSE(choose_runtime(on.machine));
    CHECK(installation(on.machine).presets == on.folder / "share/twinkle/presets");
}

TEST_CASE("a broken description is an error that names it") {
    Installed on;
    for (const char* text : {"{", "{}", R"({"schema": "twinkle.runtime/2"})", ""}) {
        on.folder.write("libexec/twinkle/bad/runtime.json", text);
        const auto error = error_of([&] { choose_runtime(on.machine); });
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::malformed);
        CHECK(error->details().where.find("bad/runtime.json:1:") != std::string::npos);
    }
}
