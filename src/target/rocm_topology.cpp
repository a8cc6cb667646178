#include "target/rocm_topology.h"

#include <algorithm>
#include <fstream>
#include <map>

namespace fs = std::filesystem;

namespace twinkle::target {
namespace {

// 90402 is gfx942: two decimal digits each for minor and stepping, written in hexadecimal.
std::string gfx_name(long version) {
    static constexpr char digits[] = "0123456789abcdef";
    return "gfx" + std::to_string(version / 10000) + digits[version / 100 % 100 % 16] +
           digits[version % 100 % 16];
}

}  // namespace

std::vector<Gpu> read_rocm_topology(const fs::path& nodes) {
    std::map<int, Gpu> found;  // by node number: the order of the devices
    std::error_code error;
    for (fs::directory_iterator entry(nodes, error), end; !error && entry != end;
         entry.increment(error)) {
        std::ifstream in(entry->path() / "properties");
        std::string key;
        long value = 0, version = 0;
        while (in >> key >> value) {
            if (key == "gfx_target_version") {
                version = value;
            }
        }
        const std::string name = entry->path().filename().string();
        const bool numbered =
            name.size() < 9 && name.find_first_not_of("0123456789") == std::string::npos;
        if (version > 0 && numbered) {
            found[std::stoi(name)] = {"", gfx_name(version), 0};
        }
    }
    std::vector<Gpu> gpus;
    for (auto& [node, gpu] : found) {
        gpus.push_back(std::move(gpu));
    }
    return gpus;
}

}  // namespace twinkle::target
