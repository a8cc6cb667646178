#include "cli/choices_file.h"

#include "base/file.h"
#include "cli/json_fields.h"
#include "cli/report_parts.h"
#include "tuning/labels_schema.h"
#include "twinkle/error.h"

namespace twinkle::cli {
namespace {

using base::Json;

constexpr base::JsonLimits limits{.bytes = 64u << 20, .depth = 32};

[[noreturn]] void are_none(const std::filesystem::path& file, const std::string& why) {
    throw Error(ErrorCode::malformed,
                {.what = "the file has no choices that can be read",
                 .where = base::display_path(file),
                 .why = why,
                 .hint = "twinkle inspect KERNELIZED --choices FILE writes such a file"});
}

Json parsed(const std::string& text, const std::filesystem::path& file) {
    try {
        return base::parse_json(text, base::display_path(file), limits);
    } catch (const Error& error) {
        are_none(file, "it is not JSON: " + error.details().why);
    }
}

}  // namespace

std::size_t write_choices(const std::filesystem::path& file, const Json& inspected) {
    const auto& labels = list_of(inspected, "labels");
    if (labels.empty()) {
        const auto because = shown_text(inspected, "because");
        throw Error(ErrorCode::not_found,
                    {.what = "the model says of no site what serves it",
                     .where = text_of(inspected, "file"),
                     .why = because.empty() ? "it has no labels" : because,
                     .hint = "labels are in models that twinkle kernelize or tune wrote; freezing "
                             "drops them unless preserved_attrs=[\"twinkle_labels\"] keeps them"});
    }
    base::write_file_atomically(
        file, base::dump_json({{"schema", tuning::labels_schema}, {"sites", labels}}));
    return labels.size();
}

std::string read_choices(const std::filesystem::path& file) {
    std::string text = base::read_file(file, "choices", limits.bytes);
    const Json json = parsed(text, file);
    if (!json.is_object() || json.value("schema", Json()) != tuning::labels_schema) {
        are_none(file, std::string("its schema is not ") + tuning::labels_schema);
    }
    return text;
}

}  // namespace twinkle::cli
