#pragma once
// Names of TorchScript classes as their authors wrote them.

#include <string>
#include <string_view>

namespace twinkle::runtime {

// Behind it stand the names of what is compiled from a kernel's package: "layers.RMSNorm".
inline constexpr const char* kernel_code = "__torch__.twinkle_kernels.";

// "__torch__.pkg.mod.___torch_mangle_5.Name" → "pkg.mod.Name".
std::string unmangled(std::string_view qualified_name);

// The same for every name in a longer text: a type, a signature, a printed graph.
std::string without_mangling(std::string_view text);

}  // namespace twinkle::runtime
