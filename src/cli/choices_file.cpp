#include "cli/choices_file.h"

#include <initializer_list>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/text.h"
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
        are_none(file, "it cannot be read as JSON: " + error.details().why);
    }
}

using Fits = bool (*)(const Json&);

bool is_text(const Json& value) {
    return value.is_string();
}
bool is_text_or_none(const Json& value) {
    return value.is_string() || value.is_null();
}
bool is_integer_or_none(const Json& value) {
    return value.is_number_integer() || value.is_null();
}
bool is_object_or_none(const Json& value) {
    return value.is_object() || value.is_null();
}

// The first member that is not what inspect --choices writes; null: none.
const char* unfit_member(const Json& object,
                         std::initializer_list<std::pair<const char*, Fits>> members) {
    for (const auto& [key, fits] : members) {
        if (!fits(object.value(key, Json()))) {
            return key;
        }
    }
    return nullptr;
}

// What is wrong with a site's label; "": nothing.
std::string problem_of(const Json& label) {
    if (!label.is_object()) {
        return " is no object";
    }
    const char* unfit =
        unfit_member(label, {{"site", is_text}, {"of", is_text}, {"input", is_integer_or_none}});
    if (unfit != nullptr) {
        return std::string(".") + unfit + " is missing, or of another type";
    }
    const auto found = label.find("serves");
    if (found == label.end() || !found->is_array()) {
        return ".serves is no list";
    }
    const Json& serves = *found;
    for (std::size_t i = 0; i < serves.size(); ++i) {
        const std::string place = ".serves[" + std::to_string(i) + "]";
        if (!serves[i].is_object()) {
            return place + " is no object";
        }
        const bool replaced = serves[i].value("kernel", Json()).is_string();
        unfit = unfit_member(serves[i], {{"kernel", is_text_or_none},
                                         {"build", replaced ? is_text : is_text_or_none},
                                         {"cfg", is_object_or_none},
                                         {"elements", is_integer_or_none}});
        if (unfit != nullptr) {
            return place + "." + unfit + " is missing, or of another type";
        }
    }
    return "";
}

void require_labels(const Json& sites, const std::filesystem::path& file) {
    if (sites.empty()) {
        are_none(file, "it has no list of sites");
    }
    std::set<std::string> names;
    for (std::size_t i = 0; i < sites.size(); ++i) {
        const std::string place = "sites[" + std::to_string(i) + "]";
        if (const std::string problem = problem_of(sites[i]); !problem.empty()) {
            are_none(file, place + problem);
        }
        const std::string name = sites[i]["site"].get<std::string>();
        if (!names.insert(name).second) {
            are_none(file,
                     place + " names a site that another one has named: " + base::printable(name));
        }
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
    std::string text = base::read_file(file, "file of choices", limits.bytes);
    const Json json = parsed(text, file);
    if (!json.is_object() || json.value("schema", Json()) != tuning::labels_schema) {
        are_none(file, std::string("its schema is not ") + tuning::labels_schema);
    }
    require_labels(list_of(json, "sites"), file);
    return text;
}

}  // namespace twinkle::cli
