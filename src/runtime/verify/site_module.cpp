#include "runtime/verify/site_module.h"

#include "runtime/graph/function_calls.h"
#include "runtime/graph/sites.h"

namespace twinkle::runtime {

namespace jit = torch::jit;

jit::Module module_of(std::shared_ptr<jit::Graph> graph) {
    const auto unit = std::make_shared<jit::CompilationUnit>();
    jit::Module module(c10::QualifiedName("__torch__.twinkle_call"), unit);
    graph->insertInput(0, "self")->setType(module.type());
    module.type()->addMethod(unit->create_function(
        c10::QualifiedName(*module.type()->name(), "forward"), std::move(graph)));
    return module;
}

std::optional<jit::Module> module_at(const jit::Module& model, const std::string& site) {
    if (site.find(':') == std::string::npos) {
        return instance_at(model, site);
    }
    for (const FunctionCall& call : function_calls(model)) {
        if (call.site == site) {
            return module_of(jit::toGraphFunction(call.callee()).graph()->copy());
        }
    }
    return std::nullopt;
}

}  // namespace twinkle::runtime
