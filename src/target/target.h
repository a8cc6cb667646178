#pragma once
// The machine for which builds are chosen: this one, or one that a target describes.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "target/backend.h"
#include "target/machine.h"
#include "target/runtime.h"

namespace twinkle::target {

struct Target {
    std::optional<Version> torch;     // none: no LibTorch there
    std::optional<bool> cxx11;        // the ABI of LibTorch; none: not known
    Backend backend;                  // LibTorch's; without one, the machine's
    std::optional<std::string> arch;  // the first GPU's: "9.0", "gfx942"; none: not known
    std::string cpu = "x86_64";
    std::string os = "linux";
    std::optional<Version> tvm_ffi;
    std::optional<Version> macos;

    // The devices that a kernel may use there: "cpu", and that of the backend.
    std::vector<std::string> devices() const;
    // The backend that a build for `device` needs; none if the target has no such device.
    std::optional<Backend> backend_for(std::string_view device) const;
    // major * 10 + minor of a CUDA arch, or the digits of a gfx name; none if not known.
    std::optional<int> capability() const;
    // The keys and values of a target specification, as text; absent values are "none".
    std::map<std::string, std::string> to_map() const;
    std::string text() const;  // "torch=2.13,backend=cpu,…", for messages
};

// A target as written: only the keys that are given. `where` is for messages.
struct TargetSpec {
    std::map<std::string, std::string> values;
    std::string where;
};

// The keys of a target, for messages and for readers of other formats.
const std::vector<std::string>& target_keys();

// `key=value,…`. Unknown keys, repeated keys: Error(malformed).
TargetSpec parse_target_spec(std::string_view text);
// A file written by `twinkle env --json`.
TargetSpec read_target_file(const std::filesystem::path& file);

// Checks the values and fills in missing ones from this machine. Queries the GPU only if a backend
// of this machine needs it and the specification does not say. Throws Error(malformed).
Target complete_target(const TargetSpec& spec, const Machine& machine,
                       const std::optional<Runtime>& runtime);

// Resolves --target: "here", a name in `named` ([targets] of the manifest), `key=value,…` or a
// file. None: here.
Target choose_target(const std::optional<std::string>& text,
                     const std::map<std::string, TargetSpec>& named, const Machine& machine,
                     const std::optional<Runtime>& runtime);

}  // namespace twinkle::target
