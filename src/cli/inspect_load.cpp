#include "cli/inspect_load.h"

#include "base/table.h"
#include "base/text.h"
#include "cli/json_fields.h"
#include "cli/model_request.h"
#include "kernel/schema.h"

namespace twinkle::cli {
namespace {

using base::Json;
using base::Style;
using base::Table;

std::vector<std::string> texts_of(const Json& list) {
    std::vector<std::string> texts;
    for (const Json& one : list) {
        texts.push_back(one.is_string() ? one.get<std::string>() : "");
    }
    return texts;
}

}  // namespace

Json load_kernel_apart(const std::filesystem::path& kernel, Console& console) {
    std::error_code error;
    const auto path = std::filesystem::canonical(kernel, error);
    if (error) {
        throw Error(ErrorCode::not_found, {.what = "the kernel is not there",
                                           .where = kernel.string(),
                                           .why = error.message(),
                                           .hint = {}});
    }
    protocol::Request request;
    request.command = "inspect-kernel";
    request.kernel = path;
    return run_worker(find_worker(console), request, console);
}

void note_registered(const Json& loaded, operations::KernelView& view) {
    const auto& metadata = view.inspection.build.metadata;
    if (!loaded.value("ok", false) || !metadata) {
        return;
    }
    const std::string prefix = metadata->id + "::";
    std::vector<kernel::OperatorFacts> registered;
    for (const auto& op : list_of(loaded, "operators")) {
        const auto schema = kernel::parse_schema(text_of(op, "declaration"));
        if (schema && text_of(op, "name") == prefix + schema->name) {
            registered.push_back({.name = schema->name,
                                  .schema = schema->text,
                                  .mutates = schema->mutates,
                                  .keys = texts_of(list_of(op, "keys")),
                                  .keys_are_certain = true});
        }
    }
    kernel::note_loaded(view.inspection, std::move(registered));
}

std::string load_report(const Json& loaded, std::size_t columns, bool color) {
    const auto why = text_of(loaded, "why");
    if (!loaded.value("ok", false)) {
        return base::styled("loading it failed", Style::red, color) + ": " + base::printable(why) +
               "\n";
    }
    std::string text = why.empty() ? "" : base::printable(why) + "\n";
    Table operators({{"operator"},
                     {"dispatch keys", Table::Align::left, Table::Fit::wrap},
                     {"mutates"},
                     {"aliases", Table::Align::left, Table::Fit::wrap},
                     {"schema as registered", Table::Align::left, Table::Fit::wrap}});
    for (const auto& op : loaded.value("operators", Json::array())) {
        operators.add({{text_of(op, "name")},
                       {joined_texts(op.value("keys", Json::array()))},
                       {joined_texts(op.value("mutates", Json::array()))},
                       {joined_texts(op.value("aliases", Json::array()))},
                       {text_of(op, "schema")}});
    }
    if (!operators.empty()) {
        text +=
            base::styled("loaded", Style::bold, color) + "\n" + operators.render(columns, color);
    }
    for (const auto& problem : loaded.value("problems", Json::array())) {
        text += base::styled("problem", Style::yellow, color) + ": " +
                base::printable(problem.get<std::string>()) + "\n";
    }
    const auto output = text_of(loaded, "output");
    return output.empty() ? text : text + "it writes: " + base::printable(output) + "\n";
}

}  // namespace twinkle::cli
