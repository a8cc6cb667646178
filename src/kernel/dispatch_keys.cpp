#include "kernel/dispatch_keys.h"

#include <algorithm>
#include <array>
#include <set>

#include "binary/constant_strings.h"

namespace twinkle::kernel {
namespace {

constexpr std::array<std::string_view, 24> known_keys{"CPU",
                                                      "CUDA",
                                                      "HIP",
                                                      "XPU",
                                                      "MPS",
                                                      "Meta",
                                                      "PrivateUse1",
                                                      "QuantizedCPU",
                                                      "QuantizedCUDA",
                                                      "SparseCPU",
                                                      "SparseCUDA",
                                                      "BackendSelect",
                                                      "Autograd",
                                                      "AutogradCPU",
                                                      "AutogradCUDA",
                                                      "AutogradXPU",
                                                      "AutogradMPS",
                                                      "AutocastCPU",
                                                      "AutocastCUDA",
                                                      "ADInplaceOrView",
                                                      "CompositeImplicitAutograd",
                                                      "CompositeExplicitAutograd",
                                                      "CatchAll",
                                                      "FuncTorchBatched"};
constexpr std::uint64_t largest_names = 64u << 20;
constexpr std::size_t longest_block_name = 256;

bool is_key(std::string_view text) {
    return std::find(known_keys.begin(), known_keys.end(), text) != known_keys.end();
}

// "…TORCH_LIBRARY_IMPL_init_<namespace>_<key>_<number>…": of static functions, so in .symtab only.
void keys_of_blocks(const binary::ElfLayout& layout, std::set<std::string>& keys) {
    constexpr std::string_view marker = "TORCH_LIBRARY_IMPL_init_";
    for (const binary::Section& section : layout.sections()) {
        if (section.name != ".strtab") {
            continue;
        }
        const std::string names =
            layout.source().bytes(section.offset, section.size, largest_names);
        for (auto at = names.find(marker); at != std::string::npos;
             at = names.find(marker, at + 1)) {
            std::string_view rest =
                std::string_view(names).substr(at + marker.size(), longest_block_name);
            rest = rest.substr(0, rest.find('\0'));
            for (auto begin = rest.find('_'); begin != std::string_view::npos;
                 begin = rest.find('_', begin + 1)) {
                const auto word = rest.substr(begin + 1, rest.find('_', begin + 1) - begin - 1);
                if (is_key(word)) {
                    keys.emplace(word);
                }
            }
        }
    }
}

void keys_of_stable_abi(const binary::ElfLayout& layout, std::set<std::string>& keys) {
    for (const std::string_view key : known_keys) {
        binary::for_each_constant_string(layout, key, key.size(), [&](std::string_view text) {
            if (text == key) {
                keys.emplace(key);
            }
        });
    }
}

}  // namespace

std::vector<std::string> find_dispatch_keys(const binary::ElfLayout& layout,
                                            const binary::Library& library) {
    std::set<std::string> keys;
    keys_of_blocks(layout, keys);
    const auto& symbols = library.symbols.symbols;
    const bool stable = std::any_of(symbols.begin(), symbols.end(), [](const auto& symbol) {
        return !symbol.defined && symbol.name == "aoti_torch_library_init_impl";
    });
    if (stable) {
        keys_of_stable_abi(layout, keys);
    }
    return {keys.begin(), keys.end()};
}

}  // namespace twinkle::kernel
