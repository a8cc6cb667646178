#pragma once
// Labels of a kernelized model: what serves each replaced site, and why. They are in its file
// (`twinkle inspect` lists them), and survive saving and loading.

#include "twinkle/api.h"
#include "twinkle/tuning_config.h"

#include <torch/script.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle {

struct Label {
    struct Served {                           // calls of some sizes
        std::int64_t from = 0;                // rows
        std::optional<std::int64_t> up_to{};  // none: all others
        std::string kernel{};                 // "twinkle-pack: RMSNorm"; empty: the original
        std::string build{};                  // hash
        CfgFields cfg{};
        std::optional<std::int64_t> elements{};  // `up_to` as elements of the input that decides
    };
    std::string site{};
    std::string kind{};  // "layer", "function", "pattern"
    std::string of{};    // its name: "RMSNorm"
    std::string because{};
    std::vector<Served> serves{};         // by size
    std::optional<std::int64_t> input{};  // whose size decides, where there are several
};

// Empty where there are none, or what the model has cannot be read.
TWINKLE_API std::vector<Label> find_labels(const torch::jit::Module& model);
// Reads a text: what `twinkle inspect --json` prints, or the model's attribute itself. Throws
// Error(malformed) for what is no JSON.
TWINKLE_API std::vector<Label> find_labels(std::string_view dump);

struct SizedConfig {
    std::optional<std::int64_t> up_to;  // rows
    CfgFields cfg;                      // empty: the original
};
// Returns them by site.
TWINKLE_API std::map<std::string, std::vector<SizedConfig>> labels_to_configs(
    const std::vector<Label>& labels);

// While it lives, what this thread calls is a range of this name for LibTorch's profiler and, where
// that emits them, for NVTX.
class TWINKLE_API label {
public:
    explicit label(const std::string& name);
    ~label();
    label(const label&) = delete;
    label& operator=(const label&) = delete;

private:
    struct Range;
    std::unique_ptr<Range> range_;
};

}  // namespace twinkle
