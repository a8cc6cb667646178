#include "runtime/plan/site_ranges.h"

#include "runtime/graph/forward_methods.h"
#include "runtime/graph/function_calls.h"
#include "runtime/graph/sites.h"

#include <map>
#include <optional>
#include <vector>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

constexpr const char* attribute = "twinkle_range";

// Inserts the begin of a range where the graph's insert point is, and returns what ends it.
jit::Value* begin(jit::Graph& graph, jit::Value* name) {
    return graph.insert(c10::Symbol::fromQualString("profiler::_record_function_enter_new"),
                        {name, c10::IValue()});
}

void end(jit::Graph& graph, jit::Value* range) {
    graph.insert(c10::Symbol::fromQualString("profiler::_record_function_exit"), {range});
}

void wrap_body(jit::Graph& graph) {
    jit::Value* range = nullptr;
    {
        const jit::WithInsertPoint first(*graph.nodes().begin());
        range = begin(graph, graph.insertGetAttr(graph.inputs().at(0), attribute));
    }
    const jit::WithInsertPoint last(graph.return_node());
    end(graph, range);
}

// `name`: the attribute of the instance; none: the text itself, as a function has no instance.
void wrap_call(const FunctionCall& call, const std::optional<std::string>& name) {
    jit::Graph& graph = *call.node->owningGraph();
    jit::Value* range = nullptr;
    {
        const jit::WithInsertPoint before(call.node);
        range = begin(graph, name ? graph.insertGetAttr(graph.inputs().at(0), *name)
                                  : graph.insertConstant(call.site));
    }
    const jit::WithInsertPoint after(call.node->next());
    end(graph, range);
}

void add_to_layers(const jit::Module& root, const std::set<std::string>& sites) {
    std::set<c10::ClassTypePtr> wrapped;
    for (const Instance& instance : instances_of(root)) {
        jit::Module module = instance.module;
        if (!sites.contains(instance.path)) {
            continue;
        }
        module.register_attribute(attribute, c10::StringType::get(), instance.path);
        if (wrapped.insert(module.type()).second) {
            for (jit::Function* method : forward_methods(module.type())) {
                wrap_body(*jit::toGraphFunction(*method).graph());
            }
        }
    }
}

// An earlier kernelize may have named other calls of its class.
std::string free_attribute(const jit::Module& instance) {
    std::string name = attribute;
    for (int i = 0; instance.hasattr(name); ++i) {
        name = std::string(attribute) + "_" + std::to_string(i);
    }
    return name;
}

void add_to_calls(const jit::Module& root, const std::set<std::string>& sites) {
    std::map<const jit::Node*, std::string> names;
    for (const FunctionCall& call : function_calls(root)) {
        if (!sites.contains(call.site)) {
            continue;
        }
        const auto [name, first] = names.try_emplace(call.node, free_attribute(call.instance));
        if (!call.in_function) {
            jit::Module instance = call.instance;
            instance.register_attribute(name->second, c10::StringType::get(), call.site);
        }
        if (first) {
            wrap_call(call, call.in_function ? std::nullopt : std::optional(name->second));
        }
    }
}

// Instances that share a class with a site get their own path: an object with fewer values than its
// class has attributes cannot be saved.
void name_others(const jit::Module& root) {
    for (const Instance& instance : instances_of(root)) {
        const auto object = instance.module._ivalue();
        const auto type = object->type();
        for (std::size_t i = 0; i < type->numAttributes(); ++i) {
            const bool missing = i >= object->slots().size() || !object->getSlot(i).isString();
            if (missing && type->getAttributeName(i).starts_with(attribute)) {
                object->setSlot(i, instance.path);
            }
        }
    }
}

}  // namespace

void add_ranges(jit::Module& root, const std::set<std::string>& sites) {
    add_to_layers(root, sites);
    add_to_calls(root, sites);
    name_others(root);
}

}  // namespace twinkle::runtime
