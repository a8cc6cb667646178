#include "cli/output_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/file.h"
#include "twinkle/error.h"

namespace twinkle::cli {
namespace fs = std::filesystem;
namespace {

bool is_one_of(const std::string& text, const std::vector<std::string>& words) {
    return std::find(words.begin(), words.end(), text) != words.end();
}

// Names of files that belong to projects and kernels: output never goes there, even if none exists.
bool is_reserved(const fs::path& file) {
    return is_one_of(file.filename().string(), {"twinkle.toml", "pyproject.toml", "twinkle.lock",
                                                "kernels.lock", "metadata.json"});
}

// A suffix of another kind of file shows that the file is meant for something else.
bool has_other_suffix(const fs::path& file, OutputKind kind) {
    const std::string suffix = file.extension().string();
    const bool source = is_one_of(suffix, {".toml", ".lock", ".py", ".so"});
    const bool tensors = is_one_of(suffix, {".pt", ".pth", ".pt2", ".safetensors", ".onnx"});
    const bool text = is_one_of(suffix, {".json", ".sarif", ".svg", ".md", ".html", ".htm"});
    return source || (kind == OutputKind::tensors ? text : tensors);
}

// Checks how it begins: twinkle and torch.save write archives, JSON or drawings; anything else was
// made by others. An empty file may be replaced.
bool has_other_content(const fs::path& file, OutputKind kind) {
    std::string begin(512, '\0');
    std::ifstream stream(file, std::ios::binary);
    stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
    begin.resize(static_cast<std::size_t>(stream.gcount()));
    if (begin.empty()) {
        return false;
    }
    if (kind == OutputKind::tensors) {  // an archive, or the pickle of old versions
        return !begin.starts_with("PK") && !begin.starts_with("\x80");
    }
    const auto first = begin.find_first_not_of(" \t\r\n");
    return first == std::string::npos || std::string("{[<").find(begin[first]) == std::string::npos;
}

[[noreturn]] void refuse(const std::string& what, const std::string& path, const std::string& why,
                         const std::string& hint) {
    throw Error(ErrorCode::malformed, {.what = what, .where = path, .why = why, .hint = hint});
}

}  // namespace

void check_output(const std::string& path, OutputKind kind, const std::vector<fs::path>& sources) {
    std::error_code error;
    const auto file = fs::weakly_canonical(path, error);  // resolves links
    const bool there = !error && fs::is_regular_file(file, error);
    if (is_reserved(path) || is_reserved(file) ||
        (there && (has_other_suffix(file, kind) || has_other_content(file, kind)))) {
        refuse("the output would overwrite another kind of file", path,
               there ? "a file of another kind, or a project's or kernel's own, is there"
                     : "projects and kernels call their own files so",
               there ? "choose another file, or remove this one first" : "choose another name");
    }
    for (const auto& source : sources) {
        if (base::absolute_path(path) == source || fs::equivalent(path, source, error)) {
            refuse("the output would overwrite what is read", path, {}, "choose another file");
        }
    }
}

fs::path output_file(const std::string& path, OutputKind kind,
                     const std::vector<fs::path>& sources) {
    if (path == "-") {
        refuse("the output cannot be standard output", {},
               kind == OutputKind::tensors ? "it is a binary file"
                                           : "the result of the command is written there",
               "name a file");
    }
    if (path.empty()) {
        refuse("the output has no name", {}, {}, "name a file");
    }
    check_output(path, kind, sources);
    const auto result = base::absolute_path(path);
    if (fs::is_directory(result)) {
        refuse("the output is a folder, not a file", path, {}, {});
    }
    if (access(result.parent_path().c_str(), W_OK | X_OK) != 0) {
        throw Error(ErrorCode::failed, {.what = "the output cannot be written",
                                        .where = path,
                                        .why = std::strerror(errno),
                                        .hint = "choose another folder"});
    }
    return result;
}

void check_standard_output(const std::string& output, bool json) {
    if (json && output == "-") {
        refuse("--json and - both want standard output", {}, {}, "leave one of them out");
    }
}

}  // namespace twinkle::cli
