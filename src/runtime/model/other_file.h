#pragma once
// What a file is that is no TorchScript archive, told from its first bytes, its list of records or
// its pickle. Nothing is unpickled: what a pickle would call is only read.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace twinkle::runtime {

// A file that does not begin like a zip archive: "it is a safetensors file: weights without code".
std::string describe_file(std::string_view first_bytes, std::uintmax_t size);

// A zip archive that PyTorch's reader refuses.
std::string describe_zip(const std::filesystem::path& file);

// What torch.save put into an archive, by its data.pkl.
std::string describe_pickle(std::string_view data);

}  // namespace twinkle::runtime
