#include "cli/inspect_compile.h"

#include <algorithm>
#include <functional>

#include "base/file.h"
#include "cli/json_fields.h"
#include "cli/model_request.h"
#include "target/runtime.h"

namespace twinkle::cli {
namespace {

using base::Json;
using kernel::Verdict;

void each_verdict(operations::KernelView& view, const std::function<void(Verdict&)>& change) {
    for (auto& layer : view.inspection.layers) change(layer.verdict);
    for (auto& function : view.inspection.functions) change(function.verdict);
}

protocol::Request request_for(const operations::KernelView& view) {
    const kernel::Build& build = view.inspection.build;
    Json operators = Json::array();
    for (const MappedOperator& op : build.operators) {
        operators.push_back({{"name", op.name}, {"schema", op.schema}});
    }
    protocol::Request request;
    request.command = "compile-kernel";
    request.kernel = base::absolute_path(build.package);
    request.build = {{"op_namespace", build.metadata ? build.metadata->id : ""},
                     {"variant", view.variant},
                     {"operators", operators}};
    return request;
}

template <class Judged, class NameOf>
void apply(const Json& trials, std::vector<Judged>& judged, const NameOf& name_of) {
    for (const Json& trial : trials) {
        const auto found = std::find_if(judged.begin(), judged.end(), [&](const Judged& one) {
            return name_of(one) == text_of(trial, "name");
        });
        if (found == judged.end()) {
            continue;
        }
        const auto outcome = text_of(trial, "outcome");
        if (outcome == "compiled") {
            kernel::note_compiled(found->verdict, text_of(trial, "types"));
        } else if (outcome == "refused") {
            kernel::note_refused(found->verdict, text_of(trial, "why"));
        } else {
            kernel::note_not_compiled(found->verdict, text_of(trial, "why"));
        }
    }
}

void nothing_compiled(operations::KernelView& view, const std::string& why) {
    each_verdict(view, [&](Verdict& verdict) { kernel::note_not_compiled(verdict, why); });
}

}  // namespace

void compile_sources(operations::KernelView& view, Console& console) {
    bool any = false;
    each_verdict(view, [&](const Verdict& verdict) {
        any = any || verdict.usable != kernel::Usability::needs_python;
    });
    if (!any) {
        return;
    }
    if (view.inspection.build.package.empty()) {
        nothing_compiled(view, "its files are not on this machine");
        return;
    }
    if (!target::choose_runtime(target::this_machine())) {
        nothing_compiled(view, "there is no LibTorch here");
        return;
    }
    try {
        const Json result = run_worker(find_worker(console), request_for(view), console);
        apply(result.value("layers", Json::array()), view.inspection.layers,
              [](const auto& one) { return one.layer.name; });
        apply(result.value("functions", Json::array()), view.inspection.functions,
              [](const auto& one) { return one.function.name; });
    } catch (const Error& error) {
        const auto& details = error.details();
        nothing_compiled(view, details.what + (details.why.empty() ? "" : ": " + details.why));
        return;
    }
    // Layers and functions that the worker does not mention were not compiled.
    each_verdict(view, [](Verdict& verdict) {
        if (verdict.types.empty() && verdict.usable != kernel::Usability::not_compiled) {
            kernel::note_not_compiled(verdict, "it was not tried");
        }
    });
}

}  // namespace twinkle::cli
