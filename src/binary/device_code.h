#pragma once
// GPU code embedded in a library: its architectures and forms. Only the containers are read, never
// the code: an architecture is stated before its code, compressed or not.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "binary/elf_layout.h"

namespace twinkle::binary {

enum class DeviceCodeKind { cubin, ptx, lto_ir, hip };
std::string_view device_code_name(DeviceCodeKind kind);  // "cubin", "ptx", …

struct DeviceCode {
    DeviceCodeKind kind = DeviceCodeKind::cubin;
    std::string arch;  // "sm_90a", "sm_100f", "gfx90a:xnack-"
    bool compressed = false;
    bool relocatable = false;  // input of the device linker: not what runs
    std::uint64_t size = 0;    // in the file

    bool operator==(const DeviceCode&) const = default;
};

struct DeviceCodeList {
    std::vector<DeviceCode> entries;  // in the order of the file
    bool complete = true;             // false: a container is broken, or of an unknown kind
};

DeviceCodeList read_device_code(const ElfLayout& layout);

// The containers in [offset, offset + size): of nvcc, and of clang for HIP.
DeviceCodeList read_fatbins(const ByteSource& source, std::uint64_t offset, std::uint64_t size,
                            bool relocatable);
DeviceCodeList read_hip_bundles(const ByteSource& source, std::uint64_t offset, std::uint64_t size);

// The architectures that the code runs on, spelled as in metadata.json, sorted, each once: "7.5",
// "9.0a", "10.0f", "12.0+PTX"; "gfx90a". Code for the device linker counts only if there is nothing
// else, as in an object file.
std::vector<std::string> runnable_archs(const std::vector<DeviceCode>& code);

}  // namespace twinkle::binary
