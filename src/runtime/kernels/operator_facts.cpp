#include "runtime/kernels/operator_facts.h"

#include "kernel/schema.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <sstream>

namespace twinkle::runtime {

namespace {

using base::Json;

struct DeclaredFacts {
    std::mutex mutex;
    // None: it is declared, and nothing is known of it.
    std::map<std::string, std::optional<OperatorFacts>> facts;
};

DeclaredFacts& declared_facts() {
    static auto& declared = *new DeclaredFacts();
    return declared;
}

std::string without_namespace(const std::string& name) {
    const auto colons = name.find("::");
    return colons == std::string::npos ? name : name.substr(colons + 2);
}

// A composite of other operators has their gradients; but what writes into its arguments is no
// composite, however it was registered.
bool has_autograd_kernel(const c10::OperatorHandle& op) {
    for (const auto key : {c10::DispatchKey::Autograd, c10::DispatchKey::AutogradCPU,
                           c10::DispatchKey::AutogradCUDA}) {
        if (op.hasKernelForDispatchKey(key)) {
            return true;
        }
    }
    return !op.schema().is_mutable() &&
           op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

// An operator may do everything in its autograd kernel, or be for quantized tensors alone.
bool has_kernel(const c10::OperatorHandle& op, c10::DispatchKey backend, c10::DispatchKey autograd,
                c10::DispatchKey quantized) {
    return op.hasComputedKernelForDispatchKey(backend) || op.hasKernelForDispatchKey(autograd) ||
           op.hasKernelForDispatchKey(c10::DispatchKey::Autograd) ||
           op.hasKernelForDispatchKey(quantized);
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
        text.replace(at, from.size(), to);
        at += to.size();
    }
}

}  // namespace

// A bare `Tensor!` gets an alias set with a name that cannot be written, and none after the call:
// "Tensor($0! -> )".
std::string declaration_of(const c10::FunctionSchema& schema) {
    std::ostringstream out;
    out << schema;
    std::string text = without_namespace(out.str());
    replace_all(text, "($", "(set_");
    replace_all(text, "! -> )", "!)");
    return text;
}

std::string full_name(const c10::OperatorName& name) {
    return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

OperatorFacts facts_of(const c10::OperatorHandle& op) {
    return {.name = without_namespace(full_name(op.operator_name())),
            .schema = declaration_of(op.schema()),
            .cpu = has_kernel(op, c10::DispatchKey::CPU, c10::DispatchKey::AutogradCPU,
                              c10::DispatchKey::QuantizedCPU),
            .cuda = has_kernel(op, c10::DispatchKey::CUDA, c10::DispatchKey::AutogradCUDA,
                               c10::DispatchKey::QuantizedCUDA),
            .autograd = has_autograd_kernel(op)};
}

std::vector<OperatorFacts> operators_of(const std::string& op_namespace) {
    std::vector<OperatorFacts> found;
    if (op_namespace.empty()) {  // a kernel without a library
        return found;
    }
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
        if (name.getNamespace() != op_namespace) {
            continue;
        }
        if (const auto op = dispatcher.findSchema(name)) {
            found.push_back(facts_of(*op));
        }
    }
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    return found;
}

Json to_json(const OperatorFacts& facts) {
    return {{"name", facts.name},
            {"schema", facts.schema},
            {"cpu", facts.cpu},
            {"cuda", facts.cuda},
            {"autograd", facts.autograd}};
}

std::optional<OperatorFacts> operator_facts(const Json& json) {
    const auto text = [&](const char* key) {
        const auto found = json.find(key);
        return found != json.end() && found->is_string() ? found->get<std::string>() : "";
    };
    const auto flag = [&](const char* key) {
        const auto found = json.find(key);
        return found != json.end() && found->is_boolean() && found->get<bool>();
    };
    if (!json.is_object()) {
        return std::nullopt;
    }
    OperatorFacts facts{text("name"), text("schema"), flag("cpu"), flag("cuda"), flag("autograd")};
    const auto schema = kernel::parse_schema(facts.schema);
    if (!schema || !schema->op_namespace.empty() || schema->name != facts.name) {
        return std::nullopt;
    }
    return facts;
}

std::optional<OperatorFacts> known_facts(const c10::OperatorName& name) {
    DeclaredFacts& declared = declared_facts();
    {
        const std::scoped_lock lock(declared.mutex);
        if (const auto found = declared.facts.find(full_name(name));
            found != declared.facts.end()) {
            return found->second;
        }
    }
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    return op ? std::optional(facts_of(*op)) : std::nullopt;
}

void set_declared_facts(const c10::OperatorName& name, std::optional<OperatorFacts> facts) {
    DeclaredFacts& declared = declared_facts();
    const std::scoped_lock lock(declared.mutex);
    declared.facts[full_name(name)] = std::move(facts);
}

void forget_declared_facts(const std::string& op_namespace) {
    DeclaredFacts& declared = declared_facts();
    const std::scoped_lock lock(declared.mutex);
    std::erase_if(declared.facts,
                  [&](const auto& one) { return one.first.starts_with(op_namespace + "::"); });
}

}  // namespace twinkle::runtime
