#pragma once
// Describes a file that is no TorchScript archive, by its first bytes, its list of records or its
// pickle. Unpickles nothing: names that a pickle would call are only read.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace twinkle::runtime {

// Describes a file that does not begin like a zip archive: "it is a safetensors file: weights
// without code".
std::string describe_file(std::string_view first_bytes, std::uintmax_t size);

// Describes a zip archive that PyTorch's reader refuses.
std::string describe_zip(const std::filesystem::path& file);

// Describes an archive of torch.save, by its data.pkl.
std::string describe_pickle(std::string_view data);

}  // namespace twinkle::runtime
