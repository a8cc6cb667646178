#include "project/document_file.h"

#include "base/file.h"
#include "base/toml.h"

namespace twinkle::project {
namespace {

constexpr std::uint64_t largest_document = 4u << 20;

}  // namespace

base::Node read_document_file(const std::filesystem::path& file, std::string_view what) {
    const std::string origin = base::display_path(file);
    const std::string text = base::read_file(file, what, largest_document);
    return file.extension() == ".json" ? base::parse_json_document(text, origin)
                                       : base::parse_toml_document(text, origin);
}

}  // namespace twinkle::project
