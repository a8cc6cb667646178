#include "cli/check_package.h"

#include "cli/inspect_model.h"
#include "cli/json_fields.h"
#include "cli/resolution.h"
#include "target/compiled_code.h"
#include "target/runtime.h"
#include "target/target.h"
#include "twinkle/error.h"

namespace twinkle::cli {
namespace {

using base::Json;

target::CompiledFor made_for(const Json& model) {
    target::CompiledFor code{text_of(model, "device"),
                             text_of(model, "os"),
                             text_of(model, "cpu"),
                             {},
                             text_of(model, "compute_capability")};
    for (const Json& isa : list_of(model, "isa")) {
        code.isa.push_back(isa.is_string() ? isa.get<std::string>() : "");
    }
    return code;
}

// Operators that nobody has, each with the reason.
void add_missing_operators(const Json& model, std::vector<std::string>& reasons) {
    for (const Json& op : list_of(model, "operators")) {
        if (text_of(op, "from").empty()) {
            reasons.push_back("it calls " + shown_text(op, "name") + ": " +
                              shown_text(op, "because"));
        }
    }
}

}  // namespace

int check_package(const std::string& path, const std::optional<std::string>& target,
                  Console& console) {
    const Json package = inspection_of({.model = path}, console);
    if (text_of(package, "kind") != "compiled") {
        throw Error(
            ErrorCode::malformed,
            {.what = "a model cannot be checked by itself",
             .where = path,
             .why = "kernels are, and packages that AOTInductor compiled",
             .hint = "`twinkle check KERNEL --model MODEL` holds a kernel against a model"});
    }
    const auto& machine = target::this_machine();
    const target::Target wanted =
        target ? named_target(console, *target)
               : target::choose_target({}, {}, machine, target::choose_runtime(machine));
    const auto features = target ? std::nullopt : std::optional(machine.cpu().features);
    Json models = Json::array();
    std::size_t violations = 0;
    std::string text;
    for (const Json& model : list_of(package, "models")) {
        auto reasons = target::reasons_against(made_for(model), wanted, features);
        add_missing_operators(model, reasons);
        violations += reasons.size();
        for (const std::string& reason : reasons) {
            text += shown_text(model, "name") + ": " + reason + "\n";
        }
        models.push_back({{"name", text_of(model, "name")}, {"reasons", reasons}});
    }
    if (console.json()) {
        console.result("check", {{"path", path},
                                 {"kind", "compiled"},
                                 {"target", wanted.text()},
                                 {"violations", violations},
                                 {"models", models}});
    } else {
        console.result(text);
    }
    if (violations > 0) {
        throw Error(
            ErrorCode::verification,
            {.what = "the package does not run there",
             .where = path,
             .why = std::to_string(violations) + (violations == 1 ? " reason" : " reasons") +
                    ", for the target " + wanted.text(),
             .hint = "compile the model on such a machine, and name the folders of its "
                     "kernels in TWINKLE_KERNELS"});
    }
    console.note("nothing is against it");
    return 0;
}

}  // namespace twinkle::cli
