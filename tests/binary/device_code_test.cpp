#include "binary/device_code.h"

#include <cstring>
#include <random>

#include "catch.h"

using namespace twinkle::binary;

namespace {

template <class T>
void put(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// An entry as nvcc writes it.
std::string entry(std::uint16_t kind, std::uint32_t arch, std::uint64_t flags,
                  std::uint64_t size = 24) {
    std::string bytes;
    put<std::uint16_t>(bytes, kind);
    put<std::uint16_t>(bytes, 0x101);
    put<std::uint32_t>(bytes, 64);
    put<std::uint64_t>(bytes, size);
    put<std::uint32_t>(bytes, 0);
    put<std::uint32_t>(bytes, 0);
    put<std::uint32_t>(bytes, 0x10008);
    put<std::uint32_t>(bytes, arch);
    put<std::uint64_t>(bytes, 0);
    put<std::uint64_t>(bytes, flags | 0x11);
    bytes.resize(64 + static_cast<std::size_t>(size));
    return bytes;
}

std::string fatbin(const std::vector<std::string>& entries) {
    std::string body;
    for (const auto& one : entries) {
        body += one;
    }
    std::string bytes;
    put<std::uint32_t>(bytes, 0xba55ed50);
    put<std::uint16_t>(bytes, 1);
    put<std::uint16_t>(bytes, 16);
    put<std::uint64_t>(bytes, body.size());
    return bytes + body;
}

DeviceCodeList read(const std::string& bytes) {
    return read_fatbins(MemorySource(bytes), 0, bytes.size(), false);
}

std::string bundle(const std::vector<std::string>& targets) {
    std::string bytes = "__CLANG_OFFLOAD_BUNDLE__";
    put<std::uint64_t>(bytes, targets.size());
    for (const auto& target : targets) {
        put<std::uint64_t>(bytes, 1024);
        put<std::uint64_t>(bytes, 16);
        put<std::uint64_t>(bytes, target.size());
        bytes += target;
    }
    bytes.resize(4096);
    return bytes;
}

}  // namespace

TEST_CASE("the entries of several fatbins, with their suffixes and forms") {
    const std::string bytes =
        fatbin({entry(2, 80, 0), entry(2, 90, 0x100000), entry(2, 100, 0x1200000)}) +
        std::string(8, '\0') + fatbin({entry(1, 120, 0x8000), entry(8, 80, 0x8000)});
    const auto list = read(bytes);
    CHECK(list.complete);
    REQUIRE(list.entries.size() == 5);
    CHECK(list.entries[0] == DeviceCode{DeviceCodeKind::cubin, "sm_80", false, false, 24});
    CHECK(list.entries[1].arch == "sm_90a");
    CHECK(list.entries[2].arch == "sm_100f");
    CHECK(list.entries[3] == DeviceCode{DeviceCodeKind::ptx, "sm_120", true, false, 24});
    CHECK(list.entries[4].kind == DeviceCodeKind::lto_ir);
    CHECK(runnable_archs(list.entries) ==
          std::vector<std::string>{"8.0", "9.0a", "10.0f", "12.0+PTX"});
}

TEST_CASE("what waits for the device linker counts only alone") {
    const std::string bytes = fatbin({entry(2, 75, 0)});
    auto code = read_fatbins(MemorySource(bytes), 0, bytes.size(), true).entries;
    CHECK(runnable_archs(code) == std::vector<std::string>{"7.5"});
    code.push_back({DeviceCodeKind::cubin, "sm_86", false, false, 1});
    code.push_back({DeviceCodeKind::ptx, "sm_86", false, false, 1});
    CHECK(runnable_archs(code) == std::vector<std::string>{"8.6+PTX"});
}

TEST_CASE("broken containers end the reading, and it is said") {
    CHECK(read("").complete);
    CHECK(read(std::string(64, '\0')).entries.empty());
    CHECK_FALSE(read(std::string(64, 'x')).complete);
    const std::string whole = fatbin({entry(2, 80, 0), entry(2, 90, 0)});
    CHECK_FALSE(read(whole.substr(0, whole.size() - 8)).complete);
    CHECK_FALSE(read(fatbin({entry(77, 80, 0)})).complete);

    std::string endless = whole;  // an entry as large as the address space
    const std::uint64_t size = UINT64_MAX - 70;
    std::memcpy(endless.data() + 16 + 8, &size, sizeof size);
    CHECK_FALSE(read(endless).complete);
    std::string no_progress = whole;  // an entry header of no size
    std::memset(no_progress.data() + 16 + 4, 0, 4);
    CHECK_FALSE(read(no_progress).complete);
    CHECK_FALSE(read_fatbins(MemorySource(whole), 8, UINT64_MAX, false).complete);
}

TEST_CASE("bundles of code for AMD's GPUs") {
    const std::string bytes =
        bundle({"host-x86_64-unknown-linux--", "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-"}) +
        bundle({"hipv4-amdgcn-amd-amdhsa--gfx1100"});
    const auto list = read_hip_bundles(MemorySource(bytes), 0, bytes.size());
    CHECK(list.complete);
    CHECK(runnable_archs(list.entries) == std::vector<std::string>{"gfx1100", "gfx90a:xnack-"});
    const std::string compressed = "CCOB" + std::string(60, 'x');
    CHECK_FALSE(read_hip_bundles(MemorySource(compressed), 0, compressed.size()).complete);
}

TEST_CASE("changed containers are read to an end") {
    const std::string fat = fatbin({entry(2, 80, 0), entry(1, 90, 0x2000)});
    const std::string hip = bundle({"hipv4-amdgcn-amd-amdhsa--gfx90a"});
    std::mt19937 random(3);
    for (int i = 0; i < 2000; ++i) {
        std::string changed = i % 2 == 0 ? fat : hip;
        for (int k = 0; k < 3; ++k) {
            changed[random() % std::min<std::size_t>(changed.size(), 128)] =
                static_cast<char>(random());
        }
        read_fatbins(MemorySource(changed), 0, changed.size(), false);
        read_hip_bundles(MemorySource(changed), 0, changed.size());
    }
    SUCCEED();
}
