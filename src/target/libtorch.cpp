#include "target/libtorch.h"

#include "base/file.h"

namespace fs = std::filesystem;

namespace twinkle::target {
namespace {

bool has_file(const fs::path& path) {
    std::error_code error;
    return fs::exists(path, error);
}

// What follows `before`, up to the next `end`; empty: `before` is not there.
std::string text_after(const std::string& text, const std::string& before, char end) {
    const auto found = text.find(before);
    if (found == std::string::npos) {
        return "";
    }
    const auto begin = found + before.size();
    return text.substr(begin, text.find(end, begin) - begin);
}

struct Described {
    std::string version;
    std::string cuda;  // "13.0"
};

Described description(const fs::path& torch) {
    constexpr std::uint64_t small = 64u << 10;
    if (has_file(torch / "build-version")) {
        const std::string text = base::read_file(torch / "build-version", "version", small);
        return {text.substr(0, text.find_first_of(" \r\n")), ""};
    }
    if (!has_file(torch / "version.py")) {
        return {};
    }
    const std::string text = base::read_file(torch / "version.py", "version", small);
    return {text_after(text, "__version__ = '", '\''),
            text_after(text, "cuda: Optional[str] = '", '\'')};
}

Backend cuda_backend(const Described& described) {
    const auto local = described.version.find("+cu");
    if (local != std::string::npos) {
        if (const auto backend = parse_backend(described.version.substr(local + 1))) {
            return *backend;
        }
    }
    return {BackendKind::cuda, parse_version(described.cuda)};
}

}  // namespace

std::optional<LibTorch> read_libtorch(const fs::path& lib) {
    if (!has_file(lib / "libtorch.so")) {
        return std::nullopt;
    }
    const Described described = description(lib.parent_path());
    return LibTorch{
        .lib = lib,
        .version_text = described.version,
        .version = parse_version(described.version),
        .backend = has_file(lib / "libtorch_cuda.so") ? cuda_backend(described) : Backend{}};
}

}  // namespace twinkle::target
