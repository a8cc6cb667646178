#include "runtime/model/other_file.h"

#include "archive/little_endian.h"
#include "archive/zip_directory.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

namespace twinkle::runtime {

using namespace archive;

namespace {

struct Magic {
    std::string_view bytes;
    const char* is;
};

constexpr std::array<Magic, 6> magics = {{
    {"\x7f"
     "ELF",
     "it is a shared library or a program"},
    {"GGUF", "it is a GGUF file, no zip archive: weights without code"},
    {"\x08\x07\x12\x07pytorch", "it is an ONNX model, no zip archive"},
    {"\x08\x08\x12\x07pytorch", "it is an ONNX model, no zip archive"},
    {"\x89HDF", "it is an HDF5 file, no zip archive: weights without code"},
    {"\x93NUMPY", "it is a NumPy array, no zip archive"},
}};

// Lists the classes and functions that a pickle would look up, in order: "collections.OrderedDict".
// Stops at the first unknown opcode.
class PickleGlobals {
public:
    explicit PickleGlobals(std::string_view data) : rest_(data) {}

    std::vector<std::string> read() {
        while (!rest_.empty() && found_.size() < 1000 && step()) {
        }
        return std::move(found_);
    }

private:
    std::optional<std::string_view> take(std::size_t size) {
        if (size > rest_.size()) {
            return std::nullopt;
        }
        const auto taken = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return taken;
    }

    std::optional<std::string_view> take_line() {
        const auto end = rest_.find('\n');
        auto line = end == std::string_view::npos ? std::nullopt : take(end + 1);
        if (line) {
            line->remove_suffix(1);
        }
        return line;
    }

    // Bytes preceded by their length, a number of `width` bytes.
    std::optional<std::string_view> take_counted(std::size_t width) {
        const auto length = take(width);
        if (!length) {
            return std::nullopt;
        }
        std::uint64_t size = 0;
        std::memcpy(&size, length->data(), width);
        return take(size);
    }

    void add(std::string_view module, std::string_view name) {
        found_.push_back(std::string(module) + "." + std::string(name));
    }

    bool step() {
        // Opcodes with an operand of fixed size, and with a string after its length of that size.
        static const std::map<char, std::size_t> fixed = {
            {'\x80', 1}, {'\x95', 8}, {'q', 1}, {'r', 4}, {'h', 1},    {'j', 4},
            {'J', 4},    {'K', 1},    {'M', 2}, {'G', 8}, {'\x82', 1}, {'\x83', 2}};
        static const std::map<char, std::size_t> counted = {
            {'X', 4}, {'\x8c', 1}, {'\x8d', 8}, {'\x8a', 1}, {'\x8b', 4}, {'C', 1},
            {'B', 4}, {'\x8e', 8}, {'T', 4},    {'U', 1},    {'\x96', 8}};
        static constexpr std::string_view lines = "IFLSVPpg";
        const char code = take(1)->front();
        if (code == 'c' || code == 'i') {
            const auto module = take_line();
            const auto name = module ? take_line() : std::nullopt;
            if (name) {
                add(*module, *name);
            }
            return name.has_value();
        }
        if (code == '\x93') {
            add(strings_[0], strings_[1]);
            return true;
        }
        if (const auto size = fixed.find(code); size != fixed.end()) {
            return take(size->second).has_value();
        }
        if (const auto width = counted.find(code); width != counted.end()) {
            const auto text = take_counted(width->second);
            strings_ = {strings_[1], text.value_or("")};
            return text.has_value();
        }
        if (lines.find(code) != std::string_view::npos) {
            return take_line().has_value();
        }
        return code != '.';
    }

    std::string_view rest_;
    std::array<std::string_view, 2> strings_;
    std::vector<std::string> found_;
};

// The classes and functions that tensors and containers of a state_dict consist of.
bool is_plain_data(const std::string& global) {
    return global == "collections.OrderedDict" || global.starts_with("torch._utils._rebuild_") ||
           global.starts_with("torch._tensor._rebuild_") || global == "torch.Size" ||
           global == "torch.device" || global.starts_with("torch.serialization.") ||
           global.starts_with("torch.storage.") || global.starts_with("builtins.") ||
           global.starts_with("__builtin__.") ||
           (global.starts_with("torch.") && std::count(global.begin(), global.end(), '.') == 1);
}

}  // namespace

std::string describe_file(std::string_view first_bytes, std::uintmax_t size) {
    if (first_bytes.empty()) {
        return "the file is empty";
    }
    if (first_bytes.size() >= 9 && first_bytes[8] == '{') {
        const auto length = little_endian<std::uint64_t>(first_bytes, 0);
        if (length > 0 && length < size) {
            return "it is a safetensors file: weights without code";
        }
    }
    if (first_bytes[0] == '\x80') {
        return "it is a pickle, as torch.save wrote it before 1.6: a state_dict or a Python object";
    }
    for (const Magic& magic : magics) {
        if (first_bytes.starts_with(magic.bytes)) {
            return magic.is;
        }
    }
    if (first_bytes.size() >= 8 && first_bytes.substr(4, 2) == "ET") {
        return "it is an ExecuTorch program, no zip archive";
    }
    return "it is no zip archive";
}

std::string describe_zip(const std::filesystem::path& file) {
    std::vector<std::string> names;
    for (const ZipEntry& entry : zip_directory(file).value_or(std::vector<ZipEntry>())) {
        names.push_back(entry.name);
    }
    const bool of_pytorch = std::any_of(names.begin(), names.end(), [](const std::string& name) {
        return name.ends_with("/data.pkl") || name.ends_with("/constants.pkl");
    });
    if (names.empty() || of_pytorch) {
        return "its zip archive is damaged or cut short";
    }
    if (std::all_of(names.begin(), names.end(),
                    [](const std::string& name) { return name.ends_with(".npy"); })) {
        return "it is a .npz file of NumPy arrays, not PyTorch's archive";
    }
    std::vector<std::string> some;
    for (std::size_t i = 0; i < names.size() && i < 3; ++i) {
        some.push_back(base::printable(names[i].substr(0, 60)));
    }
    return "it is a zip archive, but not PyTorch's: it holds " + base::join(some, ", ") +
           (names.size() > some.size() ? ", …" : "");
}

std::string describe_pickle(std::string_view data) {
    for (const std::string& global : PickleGlobals(data).read()) {
        if (!is_plain_data(global)) {
            return "it is what torch.save writes: a pickled Python object (" +
                   base::printable(global.substr(0, 200)) + "), without code";
        }
    }
    return "it is what torch.save writes: weights (a state_dict, a checkpoint), without code";
}

}  // namespace twinkle::runtime
