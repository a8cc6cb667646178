// What packages of AOTInductor say of themselves, and what hostile ones say.

#include "archive/compiled_package.h"
#include "twinkle/error.h"

#include <string>

#include "base/temp_folder.h"
#include "catch.h"
#include "stored_zip.h"

using namespace twinkle;
using namespace twinkle::tests;
using namespace twinkle::archive;

namespace {

const std::string in_model = "pkg/data/aotinductor/model/";

Records package() {
    return {{in_model + "abc.wrapper.cpp", "int main"},
            {in_model + "abc.wrapper.so", std::string(100, 'x')},
            {in_model + "k1.cubin", std::string(7, 'x')},
            {in_model + "abc.wrapper_metadata.json",
             R"({"AOTI_DEVICE_KEY": "cuda", "AOTI_PLATFORM": "linux", "AOTI_MACHINE": "x86_64",
                 "AOTI_CPU_ISA": "AVX512 AVX512_VNNI", "AOTI_COMPUTE_CAPABILITY": "90", "owner": "us"})"},
            {in_model + "abc.wrapper.json",
             R"({"nodes": [{"name": "b", "node": {"target": "mylib::scale"}},
                           {"name": "c", "node": {"target": "mylib::scale.out"}}]})"},
            {"pkg/data/weights/w", std::string(5, 'x')}};
}

CompiledPackage read(const Records& records) {
    const test::TempFolder folder;
    return read_package(folder.write("pkg.pt2", zip_of(records)));
}

std::string refusal(const Records& records) {
    try {
        read(records);
    } catch (const Error& error) {
        return error.details().why;
    }
    return "";
}

// The package with another text in one of its records.
Records with(std::size_t record, const std::string& text) {
    Records records = package();
    records[record].second = text;
    return records;
}

}  // namespace

TEST_CASE("a compiled package says what it is for and what it calls") {
    const CompiledPackage found = read(package());
    REQUIRE(found.models.size() == 1);
    const CompiledModel& model = found.models.front();
    CHECK(model.name == "model");
    CHECK(model.made_for.device == "cuda");
    CHECK(model.made_for.isa == std::vector<std::string>{"AVX512", "AVX512_VNNI"});
    CHECK(model.made_for.capability == "90");
    CHECK(model.operators == std::map<std::string, std::size_t>{{"mylib::scale", 2}});
    CHECK(model.metadata == std::map<std::string, std::string>{{"owner", "us"}});
    CHECK(model.library_bytes == 100);
    CHECK(model.gpu_code_bytes == 7);
    CHECK(model.source_bytes == 8);
    CHECK(found.weight_bytes == 5);
}

TEST_CASE("compiled packages that are not as they should be are refused") {
    CHECK(refusal({{"pkg/archive_format", "pt2"}}).find("no model") != std::string::npos);
    Records outside = package();
    outside.emplace_back("pkg/data/aotinductor/model/../../../../../evil.so", "x");
    CHECK(refusal(outside).find("outside") != std::string::npos);
    CHECK(refusal(with(3, R"({"AOTI_DEVICE_KEY": 7})")).find("string") != std::string::npos);
    CHECK(refusal(with(3, "[]")).find("object") != std::string::npos);
    CHECK_FALSE(refusal(with(3, "{")).empty());
    CHECK(refusal(with(4, R"({"nodes": {}})")).find("list") != std::string::npos);
    CHECK(
        refusal(with(4, R"({"nodes": [{"node": {"target": "os.system"}}]})")).find("no operator") !=
        std::string::npos);
    CHECK_FALSE(refusal(with(4, R"({"nodes": )" + std::string(100000, '['))).empty());
}
