#include "target/cpu_info.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace twinkle::target {
namespace {

constexpr std::array<std::string_view, 24> useful{
    "amx_bf16", "amx_fp16", "amx_int8",    "amx_tile",    "asimd",       "asimddp",
    "avx",      "avx2",     "avx512_bf16", "avx512_fp16", "avx512_vnni", "avx512bw",
    "avx512dq", "avx512f",  "avx512vl",    "avx_vnni",    "bf16",        "f16c",
    "fma",      "fphp",     "i8mm",        "sse4_2",      "sve",         "sve2"};

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t");
    const auto last = text.find_last_not_of(" \t");
    return first == std::string_view::npos ? "" : text.substr(first, last - first + 1);
}

}  // namespace

CpuFacts read_cpuinfo(std::string_view text) {
    CpuFacts facts;
    bool features_read = false;  // the first core stands for all
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        const auto colon = line.find(':');
        if (colon == std::string_view::npos) {
            continue;
        }
        const std::string_view key = trimmed(line.substr(0, colon));
        const std::string_view value = trimmed(line.substr(colon + 1));
        if (key == "model name" && facts.model.empty()) {
            facts.model = value;
        } else if ((key == "flags" || key == "Features") && !features_read) {
            features_read = true;
            for (const std::string& flag : base::split(value, ' ')) {
                if (std::find(useful.begin(), useful.end(), flag) != useful.end()) {
                    facts.features.push_back(flag);
                }
            }
        }
    }
    std::sort(facts.features.begin(), facts.features.end());
    return facts;
}

}  // namespace twinkle::target
