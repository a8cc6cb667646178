#include "hub/names.h"

#include <algorithm>

#include "base/text.h"
#include "cache/layout.h"
#include "twinkle/error.h"

namespace twinkle::hub {
namespace {

bool is_control(char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

}  // namespace

bool is_repo_id(std::string_view text) {
    return cache::is_repository_id(text) && !text.substr(0, text.find('/')).ends_with(".git") &&
           !text.ends_with(".git");
}

void check_repo_id(std::string_view repo_id) {
    if (!is_repo_id(repo_id)) {
        throw Error(
            ErrorCode::malformed,
            {.what = "\"" + base::printable(repo_id.substr(0, 200)) +
                     "\" is not the name of a repository",
             .where = "",
             .why = "a repository is called org/name: letters, digits, \"-\", \"_\" and \".\"",
             .hint = ""});
    }
}

void check_revision(std::string_view revision) {
    const bool sane =
        !revision.empty() && revision.size() <= 255 &&
        std::none_of(revision.begin(), revision.end(),
                     [](char c) {
                         return is_control(c) || c == ' ' || c == '~' || c == '^' || c == ':' ||
                                c == '?' || c == '*' || c == '[' || c == '\\';
                     }) &&
        revision.find("..") == std::string_view::npos && cache::is_safe_path(revision);
    if (!sane) {
        throw Error(ErrorCode::malformed, {.what = "\"" + base::printable(revision.substr(0, 300)) +
                                                   "\" cannot be a branch, tag or commit",
                                           .where = "",
                                           .why = "git allows no such name",
                                           .hint = ""});
    }
}

void check_path(std::string_view path) {
    if (const std::string flaw = path_flaw(path); !flaw.empty()) {
        throw Error(ErrorCode::malformed, {.what = "\"" + base::printable(path.substr(0, 300)) +
                                                   "\" cannot be a path in a repository",
                                           .where = "",
                                           .why = flaw,
                                           .hint = ""});
    }
}

std::string path_flaw(std::string_view path) {
    if (path.empty() || path.size() > 1024) {
        return path.empty() ? "it is empty" : "it is longer than 1024 bytes";
    }
    if (path.find('\\') != std::string_view::npos) {
        return "it has a backslash";
    }
    if (!cache::is_safe_path(path)) {
        return "it would lead out of its folder, or has control characters";
    }
    for (const std::string& part : base::split(path, '/')) {
        if (part.size() > 255) {
            return "a part of it is longer than 255 bytes";
        }
    }
    return {};
}

}  // namespace twinkle::hub
