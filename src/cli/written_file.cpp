#include "cli/written_file.h"

#include <filesystem>

#include "base/file.h"
#include "base/file_identity.h"
#include "twinkle/error.h"

namespace twinkle::cli {
namespace {

[[noreturn]] void not_written(const std::string& file, const std::string& why) {
    throw Error(ErrorCode::failed,
                {.what = "the file was not written as twinkle's worker says",
                 .where = base::display_path(file),
                 .why = why,
                 .hint = "do not use what is there; -vv shows what the worker was doing"});
}

}  // namespace

void require_written(base::Json& result, const protocol::Request& request) {
    const base::Json said = result.value("written", base::Json());
    result.erase("written");
    if (!request.output || request.dry_run) {
        return;
    }
    const auto& file = *request.output;
    std::error_code error;
    const auto kind = std::filesystem::status(file, error).type();
    if (kind != std::filesystem::file_type::regular &&
        kind != std::filesystem::file_type::not_found) {
        return;  // a pipe or a device, where nothing stays
    }
    if (kind == std::filesystem::file_type::not_found) {
        not_written(file, "there is no such file");
    }
    if (!said.is_string()) {
        not_written(file, "it does not say what it wrote");
    }
    const auto found = base::identity_of(file);
    if (!found || said != found->text) {
        not_written(file, "another file is there, or it was changed since");
    }
}

}  // namespace twinkle::cli
