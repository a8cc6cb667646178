#include "base/json.h"
#include "base/text.h"
#include "runtime/model/labels.h"
#include "twinkle/error.h"
#include "twinkle/labels.h"

#include <ATen/record_function.h>

namespace twinkle {

namespace {

using base::Json;

constexpr base::JsonLimits limits{.bytes = 64u << 20, .depth = 32};

std::string text_in(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? base::printable(found->get<std::string>())
                                                       : "";
}

std::optional<std::int64_t> number_in(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number_integer()
               ? std::optional(found->get<std::int64_t>())
               : std::nullopt;
}

CfgFields cfg_in(const Json& object) {
    const auto found = object.find("cfg");
    try {
        return found != object.end() && found->is_object()
                   ? fields_from_json(base::json_line(*found))
                   : CfgFields();
    } catch (const Error&) {  // another version's
        return {};
    }
}

Label label_of(const Json& object) {
    Label label{text_in(object, "site"),
                text_in(object, "kind"),
                text_in(object, "of"),
                text_in(object, "because"),
                {},
                number_in(object, "input")};
    const auto serves = object.find("serves");
    for (const Json& one :
         serves != object.end() && serves->is_array() ? *serves : Json(Json::array())) {
        if (one.is_object()) {
            label.serves.push_back({number_in(one, "from").value_or(0), number_in(one, "up_to"),
                                    text_in(one, "kernel"), text_in(one, "build"), cfg_in(one),
                                    number_in(one, "elements")});
        }
    }
    return label;
}

// Reads the labels of a model's attribute ("sites") or of inspect's output ("labels").
std::vector<Label> labels_in(const Json& json) {
    std::vector<Label> labels;
    for (const char* key : {"sites", "labels"}) {
        const auto list = json.is_object() ? json.find(key) : json.end();
        if (list == json.end() || !list->is_array()) {
            continue;
        }
        for (const Json& one : *list) {
            // The model itself is the site "".
            if (one.is_object() && one.contains("serves") && one.contains("site") &&
                one["site"].is_string()) {
                labels.push_back(label_of(one));
            }
        }
    }
    return labels;
}

}  // namespace

std::vector<Label> find_labels(const torch::jit::Module& model) {
    const auto text = runtime::labels_of(model);
    try {
        return text ? find_labels(*text) : std::vector<Label>();
    } catch (const Error&) {  // another program's, or damaged
        return {};
    }
}

std::vector<Label> find_labels(std::string_view dump) {
    return labels_in(base::parse_json(dump, "labels", limits));
}

std::map<std::string, std::vector<SizedConfig>> labels_to_configs(
    const std::vector<Label>& labels) {
    std::map<std::string, std::vector<SizedConfig>> configs;
    for (const Label& label : labels) {
        for (const Label::Served& served : label.serves) {
            configs[label.site].push_back({served.up_to, served.cfg});
        }
    }
    return configs;
}

struct label::Range {
    at::RecordFunction function{at::RecordScope::USER_SCOPE};
};

label::label(const std::string& name) : range_(std::make_unique<Range>()) {
    if (range_->function.isActive()) {
        range_->function.before(name);
    }
}

label::~label() = default;

}  // namespace twinkle
