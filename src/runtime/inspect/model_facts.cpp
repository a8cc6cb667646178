#include "runtime/inspect/model_facts.h"
#include "runtime/graph/format.h"

#include "base/text.h"
#include "runtime/graph/class_name.h"
#include "runtime/graph/graph_walk.h"
#include "runtime/graph/sites.h"
#include "runtime/graph/stack_frames.h"
#include "runtime/layers/lost_attributes.h"
#include "runtime/model/inputs.h"
#include "twinkle/error.h"

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>

namespace twinkle::runtime {

namespace jit = torch::jit;
using base::Json;

namespace {

constexpr std::size_t longest_graph_lines = 40;
constexpr std::size_t longest_line = 400;
constexpr std::size_t longest_list = 200;
constexpr std::size_t longest_whole_graph = 16u << 20;

std::string type_text(const c10::TypePtr& type) {
    return base::printable(without_mangling(c10::unshapedType(type)->repr_str()));
}

std::string signature_of(const jit::Function& function) {
    const c10::FunctionSchema& schema = function.getSchema();
    std::vector<std::string> parameters;
    for (const c10::Argument& argument : schema.arguments()) {
        const bool self = parameters.empty() && argument.name() == "self";
        std::string text = argument.name();
        if (!self) {
            text += ": " + type_text(argument.type());
        }
        if (argument.default_value()) {
            text += " = " + value_text(*argument.default_value());
        }
        parameters.push_back(text);
    }
    std::vector<std::string> returns;
    for (const c10::Argument& result : schema.returns()) {
        returns.push_back(type_text(result.type()));
    }
    return base::printable(fmt::format("{}({}) -> {}", function.name(),
                                       base::join(parameters, ", "), base::join(returns, ", ")));
}

jit::Graph& graph_of(jit::Function& function) {
    return *jit::toGraphFunction(function).graph();
}

// Visits every method and function of the model once, also functions that only its methods call.
void for_each_function(
    const jit::Module& model,
    const std::function<void(jit::Function&, const std::string& class_name)>& visit) {
    std::set<const jit::Function*> seen;
    const std::function<void(jit::Function&, const std::string&)> enter =
        [&](jit::Function& function, const std::string& class_name) {
            if (!jit::tryToGraphFunction(function) || !seen.insert(&function).second) {
                return;
            }
            visit(function, class_name);
            std::vector<jit::Function*> called;
            for_each_node(graph_of(function).block(), [&](const jit::Node* node) {
                if (node->kind() == c10::prim::CallFunction) {
                    called.push_back(
                        node->input(0)->type()->expectRef<c10::FunctionType>().function());
                }
            });
            for (jit::Function* one : called) {
                enter(*one, "");
            }
        };
    std::set<const void*> types;
    for (const Instance& instance : instances_of(model)) {
        if (types.insert(instance.module.type().get()).second) {
            for (jit::Function* method : instance.module.type()->methods()) {
                enter(*method, instance.class_name);
            }
        }
    }
}

// The graph's first `limit` lines at most.
std::string graph_text(jit::Graph& graph, std::size_t limit, bool& cut) {
    std::ostringstream out;
    graph.print(out, /*print_source_locations=*/false);
    std::string text;
    std::size_t lines = 0;
    for (const std::string& line : base::split(without_mangling(out.str()), '\n')) {
        if (++lines > limit) {
            cut = true;
            break;
        }
        text += base::printable(line.substr(0, longest_line)) + "\n";
    }
    return text;
}

jit::Function* main_method(const c10::ClassTypePtr& type) {
    auto* forward = type->findMethod("forward");
    return forward != nullptr         ? forward
           : !type->methods().empty() ? type->methods().front()
                                      : nullptr;
}

std::size_t node_count(jit::Graph& graph) {
    std::size_t count = 0;
    for_each_node(graph.block(), [&](const jit::Node*) { ++count; });
    return count;
}

Json example_graph(const c10::ClassTypePtr& type) {
    auto* method = main_method(type);
    if (method == nullptr || !jit::tryToGraphFunction(*method)) {
        return nullptr;
    }
    jit::Graph& graph = graph_of(*method);
    constexpr std::size_t most_nodes = 2000;  // printing more costs more than it tells
    const std::size_t nodes = node_count(graph);
    bool cut = nodes > most_nodes;
    const std::string text = cut ? "" : graph_text(graph, longest_graph_lines, cut);
    return {{"method", method->name()}, {"nodes", nodes}, {"text", text}, {"cut", cut}};
}

Json methods_of(const c10::ClassTypePtr& type) {
    Json methods = Json::array();
    for (const jit::Function* method : type->methods()) {
        if (methods.size() < longest_list) {
            methods.push_back(
                {{"name", base::printable(method->name())}, {"signature", signature_of(*method)}});
        }
    }
    return methods;
}

// The remaining attributes: those that are saved, the constants of the class, and those that
// tracing dropped but its graph still shows.
Json attributes_of(const jit::Module& module, const PassedParameters& passed) {
    const auto& type = module.type();
    Json found = Json::array();
    const auto add = [&](const std::string& name, const c10::TypePtr& of, const std::string& value,
                         const char* from) {
        if (found.size() < longest_list) {
            found.push_back({{"name", base::printable(name)},
                             {"type", type_text(of)},
                             {"value", value},
                             {"from", from}});
        }
    };
    for (std::size_t i = 0; i < type->numAttributes(); ++i) {
        const std::string& name = type->getAttributeName(i);
        if (!type->getAttribute(i)->is_module() && name != "_is_full_backward_hook") {
            const char* from = type->is_parameter(i) ? "parameter"
                               : type->is_buffer(i)  ? "buffer"
                                                     : "attribute";
            add(name, type->getAttribute(i), value_text(module.attr(name)), from);
        }
    }
    for (std::size_t i = 0; i < type->numConstants(); ++i) {
        const c10::IValue value = type->getConstant(i);
        add(type->getConstantName(i), value.type(), value_text(value), "constant");
    }
    for (const auto& [name, value] : lost_attributes(module, passed.of(module)).values) {
        if (!type->hasAttribute(name) && !type->findConstant(name)) {
            add(name, value.type(), value_text(value), "graph");
        }
    }
    return found;
}

Json submodules_of(const jit::Module& module) {
    Json found = Json::object();
    for (const auto& child : module.named_children()) {
        if (found.size() < longest_list) {
            found[base::printable(child.name)] =
                base::printable(unmangled(child.value.type()->name()->qualifiedName()));
        }
    }
    return found;
}

// "traced" or "scripted", by the source ranges of the nodes in its methods; empty if none tells.
std::string origin_of(const c10::ClassTypePtr& type, StackReader& stacks) {
    std::string origin;
    for (jit::Function* method : type->methods()) {
        if (!jit::tryToGraphFunction(*method)) {
            continue;
        }
        for (const jit::Node* node : graph_of(*method).block()->nodes()) {
            if (!stacks.stack_of(node).empty()) {
                return "traced";
            }
            if (node->kind().is_aten()) {
                origin = "scripted";
            }
        }
    }
    return origin;
}

std::string last_folders(const std::string& file) {
    // Cuts the front of the path, which belongs to the machine that traced.
    std::size_t at = file.size();
    for (int parts = 0; parts < 4 && at != std::string::npos && at > 0; ++parts) {
        at = file.rfind('/', at - 1);
    }
    return at == std::string::npos || at == 0 ? file : file.substr(at + 1);
}

}  // namespace

std::string value_text(const c10::IValue& value) {
    constexpr std::size_t longest = 120;
    if (value.isTensor()) {
        const at::Tensor& tensor = value.toTensor();
        if (!tensor.defined()) {
            return "none";
        }
        std::string text =
            fmt::format("{}[{}]", dtype_name(tensor.scalar_type()), fmt::join(tensor.sizes(), ","));
        return tensor.is_cpu() ? text : text + " on " + tensor.device().str();
    }
    if (value.isDouble()) {
        return fmt::format("{}", value.toDouble());
    }
    constexpr std::size_t most_elements = 32;
    if (value.isList() && value.toListRef().size() > most_elements) {
        return fmt::format("{} of {} elements", type_text(value.type()), value.toListRef().size());
    }
    if (value.isGenericDict() && value.toGenericDict().size() > most_elements) {
        return fmt::format("{} of {} entries", type_text(value.type()),
                           value.toGenericDict().size());
    }
    if (value.isObject() || value.isCapsule() || value.isFuture()) {
        return type_text(value.type());
    }
    std::ostringstream out;
    out << value;
    const std::string text = out.str();
    return base::printable(without_mangling(text.substr(0, longest))) +
           (text.size() > longest ? "…" : "");
}

Json describe_classes(const jit::Module& model) {
    struct Class {
        std::size_t instances = 0;
        std::set<const void*> types;
        jit::Module example;
        std::string path;
    };
    std::map<std::string, Class> classes;
    for (const Instance& instance : instances_of(model)) {
        Class& entry = classes[instance.class_name];
        entry.types.insert(instance.module.type().get());
        if (entry.instances++ == 0) {
            entry.example = instance.module;
            entry.path = instance.path;
        }
    }
    const PassedParameters passed(model);
    StackReader stacks;
    Json listed = Json::array();
    for (const auto& [name, entry] : classes) {
        const auto& type = entry.example.type();
        listed.push_back({{"name", base::printable(name)},
                          {"instances", entry.instances},
                          {"types", entry.types.size()},
                          {"example", base::printable(entry.path)},
                          {"origin", origin_of(type, stacks)},
                          {"methods", methods_of(type)},
                          {"attributes", attributes_of(entry.example, passed)},
                          {"submodules", submodules_of(entry.example)},
                          {"graph", example_graph(type)}});
    }
    return listed;
}

Json describe_functions(const jit::Module& model) {
    std::map<std::string, std::pair<std::string, std::size_t>> found;  // name → signature, calls
    for_each_function(model, [&](jit::Function& function, const std::string&) {
        for_each_node(graph_of(function).block(), [&](const jit::Node* node) {
            if (node->kind() == c10::prim::CallFunction) {
                const auto* called =
                    node->input(0)->type()->expectRef<c10::FunctionType>().function();
                auto& entry = found[unmangled(called->qualname().qualifiedName())];
                entry.first = signature_of(*called);
                ++entry.second;
            }
        });
    });
    Json listed = Json::array();
    for (const auto& [name, entry] : found) {
        listed.push_back(
            {{"name", base::printable(name)}, {"signature", entry.first}, {"calls", entry.second}});
    }
    return listed;
}

Json describe_traced_functions(const jit::Module& model) {
    struct Traced {
        std::set<std::string> calls;  // method and place of the call: two on one line count as one
        std::set<std::string> classes;
    };
    StackReader stacks;
    std::map<std::pair<std::string, std::string>, Traced> found;  // file, function
    for_each_function(model, [&](jit::Function& function, const std::string& class_name) {
        const std::string method = function.qualname().qualifiedName();
        for_each_node(graph_of(function).block(), [&](const jit::Node* node) {
            const auto frames = functions_around(stacks.stack_of(node));
            std::string place = method;
            for (std::size_t i = frames.size(); i-- > 1;) {  // frames[i] calls frames[i - 1]
                place += fmt::format("|{}:{}", frames[i].file, frames[i].line);
                Traced& entry = found[{frames[i - 1].file, frames[i - 1].function}];
                entry.calls.insert(place);
                if (!class_name.empty()) {
                    entry.classes.insert(base::printable(class_name));
                }
            }
        });
    });
    Json listed = Json::array();
    for (const auto& [key, entry] : found) {
        listed.push_back({{"name", base::printable(key.second)},
                          {"file", base::printable(last_folders(key.first))},
                          {"calls", entry.calls.size()},
                          {"classes", entry.classes}});
    }
    return listed;
}

Json whole_graph(const jit::Module& model, const std::string& name) {
    std::vector<std::string> known;
    const auto answer = [&](const std::string& of, const std::string& example,
                            const std::vector<jit::Function*>& functions) {
        Json methods = Json::array();
        for (jit::Function* function : functions) {
            if (jit::tryToGraphFunction(*function)) {
                std::ostringstream out;
                graph_of(*function).print(out, /*print_source_locations=*/false);
                std::string text = without_mangling(out.str());
                const bool cut = text.size() > longest_whole_graph;
                text.resize(std::min(text.size(), longest_whole_graph));
                methods.push_back(
                    {{"name", function->name()}, {"text", std::move(text)}, {"cut", cut}});
            }
        }
        return Json{{"of", of}, {"example", example}, {"methods", methods}};
    };
    const auto is_named = [&](const std::string& full) {
        return full == name || full.ends_with("." + name);
    };
    for (const Instance& instance : instances_of(model)) {
        known.push_back(instance.class_name);
        if (is_named(instance.class_name) || (!instance.path.empty() && instance.path == name)) {
            return answer(instance.class_name, instance.path, instance.module.type()->methods());
        }
    }
    jit::Function* function = nullptr;
    for_each_function(model, [&](jit::Function& one, const std::string& class_name) {
        const std::string full = unmangled(one.qualname().qualifiedName());
        if (class_name.empty()) {
            known.push_back(full);
            function = function == nullptr && is_named(full) ? &one : function;
        }
    });
    if (function != nullptr) {
        return answer(unmangled(function->qualname().qualifiedName()), "", {function});
    }
    for (std::string& full : known) {
        full = full.substr(full.rfind('.') + 1);
    }
    const auto near = base::nearest(name, known);
    throw Error(ErrorCode::not_found,
                {.what = "the model has no class, instance or function " + base::printable(name),
                 .where = "",
                 .why = "",
                 .hint = near ? "did you mean " + base::printable(*near) + "?"
                              : "`twinkle inspect` without --graph lists them"});
}

}  // namespace twinkle::runtime
