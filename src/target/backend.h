#pragma once
// The backend of a build or a LibTorch, in the spelling of build variants: cpu, cu130, rocm71, …

#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace twinkle::target {

struct Version {
    int major = 0;
    int minor = 0;
    auto operator<=>(const Version&) const = default;
    std::string text() const;  // "2.13"
};

// "2.13", "2.13.0", "2.13.0+cpu": anything after the minor version is dropped.
std::optional<Version> parse_version(std::string_view text);

enum class BackendKind { cpu, cuda, rocm, xpu, cann, metal, neuron, tpu };

struct Backend {
    BackendKind kind = BackendKind::cpu;
    std::optional<Version> version;  // of cuda, rocm, xpu and cann

    bool operator==(const Backend&) const = default;
    std::string text() const;    // "cu130", as in a variant's name
    std::string device() const;  // "cuda": the device that its kernels run on
};

std::optional<Backend> parse_backend(std::string_view text);

// "cuda", as in metadata.json ("backend.type") and in the names of noarch variants ("npu" for
// cann).
std::string_view backend_type_name(BackendKind kind);
std::optional<BackendKind> parse_backend_type(std::string_view text);

// The devices that layers may be bound to; "metal" reads as "mps". None: no such device.
std::optional<std::string> parse_device(std::string_view text);
const std::string& device_names();  // for messages: "cpu, cuda, …"

}  // namespace twinkle::target
