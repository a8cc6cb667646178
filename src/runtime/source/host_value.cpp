#include "runtime/source/host_value.h"

#include "base/text.h"
#include "runtime/graph/class_name.h"

#include <algorithm>
#include <cctype>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using Value = std::shared_ptr<jit::SugaredValue>;

// Tracing keeps tensors and modules, and no other attribute. A class with nothing else may be a
// trace, of which nobody can tell what the original had besides.
bool may_be_traced(const c10::ClassType& type) {
    if (type.numConstants() > 0) {
        return false;
    }
    for (std::size_t i = 0; i < type.numAttributes(); ++i) {
        const std::string& name = type.getAttributeName(i);
        c10::TypePtr kept = type.getAttribute(i);
        if (const auto optional = kept->cast<c10::OptionalType>()) {
            kept = optional->getElementType();
        }
        if (kept->kind() != c10::TypeKind::TensorType && !kept->is_module() && name != "training" &&
            name != "_is_full_backward_hook") {
            return false;
        }
    }
    return true;
}

// The modules of a ModuleList, ModuleDict or Sequential, in their order.
std::vector<std::string> elements_of(const c10::ClassType& type) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < type.numAttributes(); ++i) {
        const std::string& name = type.getAttributeName(i);
        if (type.getAttribute(i)->is_module() && !name.empty() &&
            std::all_of(name.begin(), name.end(),
                        [](unsigned char c) { return std::isdigit(c) != 0; })) {
            names.push_back(name);
        }
    }
    return names;
}

// Modules of torch.nn have a bias, which may be None: a trace does not keep it then.
bool is_lost_none(const c10::ClassType& type, const std::string& field) {
    return field == "bias" &&
           unmangled(type.name()->qualifiedName()).starts_with("torch.nn.modules.") &&
           may_be_traced(type);
}

// A submodule of the host: calling it is calling its forward.
struct SubmoduleValue : jit::SugaredValue {
    explicit SubmoduleValue(jit::Value* module)
        : value(module), type(module->type()->cast<c10::ClassType>()) {}
    std::string kind() const override {
        return type ? "module " + unmangled(type->name()->qualifiedName()) : "submodule";
    }
    jit::Value* asValue(const jit::SourceRange&, jit::GraphFunction&) override { return value; }

    bool hasAttr(const jit::SourceRange& loc, jit::GraphFunction&,
                 const std::string& field) override {
        if (type == nullptr) {
            throw(jit::ErrorReport(loc) << "hasattr or getattr of a module with an interface");
        }
        const bool has = type->hasAttribute(field) || type->findConstant(field) ||
                         type->findMethod(field) != nullptr;
        if (!has && may_be_traced(*type)) {
            throw(jit::ErrorReport(loc)
                  << "the " << kind() << " has no " << field
                  << ", but if it was traced it may have had one: traces keep only tensors and "
                     "modules");
        }
        return has;
    }
    Value attr(const jit::SourceRange& loc, jit::GraphFunction& m,
               const std::string& field) override {
        const auto attribute = type ? type->findAttribute(field) : nullptr;
        if (attribute == nullptr && type && type->findConstant(field)) {
            return std::make_shared<jit::SimpleValue>(
                m.graph()->insertConstant(*type->findConstant(field), loc));
        }
        if (attribute == nullptr && type && is_lost_none(*type, field)) {
            return std::make_shared<jit::SimpleValue>(
                m.graph()->insertConstant(c10::IValue(), loc));
        }
        if (attribute == nullptr && type && type->findMethod(field) == nullptr) {
            throw(jit::ErrorReport(loc) << "the " << kind() << " has no attribute " << field);
        }
        Value found = jit::SimpleValue(value).attr(loc, m, field);
        if (attribute && attribute->is_module()) {
            return std::make_shared<SubmoduleValue>(found->asValue(loc, m));
        }
        return found;
    }
    void setAttr(const jit::SourceRange& loc, jit::GraphFunction&, const std::string& field,
                 jit::Value*) override {
        throw(jit::ErrorReport(loc)
              << "the layer assigns " << field << " of " << kind() << "; layers keep no state");
    }
    Value call(const jit::SourceRange& loc, jit::GraphFunction& m,
               at::ArrayRef<jit::NamedValue> args, at::ArrayRef<jit::NamedValue> kwargs,
               size_t n_binders) override {
        if (type && (!type->getForwardHooks().empty() || !type->getForwardPreHooks().empty())) {
            throw(jit::ErrorReport(loc) << "the submodule " << value->debugName()
                                        << " has hooks, which this call would skip");
        }
        return jit::SimpleValue(value)
            .attr(loc, m, "forward")
            ->call(loc, m, args, kwargs, n_binders);
    }

    Value element(const jit::SourceRange& loc, jit::GraphFunction& m, const std::string& name) {
        return std::make_shared<SubmoduleValue>(
            jit::SimpleValue(value).attr(loc, m, name)->asValue(loc, m));
    }
    std::shared_ptr<jit::SugaredTupleValue> elements(const jit::SourceRange& loc,
                                                     jit::GraphFunction& m) {
        const auto names = type ? elements_of(*type) : std::vector<std::string>();
        if (names.empty()) {
            throw(jit::ErrorReport(loc) << "the " << kind() << " is no list of modules");
        }
        std::vector<Value> modules;
        modules.reserve(names.size());
        for (const std::string& name : names) {
            modules.push_back(element(loc, m, name));
        }
        return std::make_shared<jit::SugaredTupleValue>(std::move(modules));
    }
    std::vector<Value> asTuple(const jit::SourceRange& loc, jit::GraphFunction& m,
                               const std::optional<size_t>& hint) override {
        return elements(loc, m)->asTuple(loc, m, hint);
    }
    Value iter(const jit::SourceRange& loc, jit::GraphFunction& m) override {
        return elements(loc, m);
    }
    jit::Value* len(const jit::SourceRange& loc, jit::GraphFunction& m) override {
        const auto count = elements(loc, m)->tup_.size();
        return m.graph()->insertConstant(static_cast<std::int64_t>(count), loc);
    }
    Value getitem(const jit::SourceRange& loc, jit::GraphFunction& m, jit::Value* index,
                  c10::TypePtr hint) override {
        // self.experts["gate"]
        if (const auto key = jit::toIValue(index); key && key->isString()) {
            return attr(loc, m, key->toStringRef());
        }
        return elements(loc, m)->getitem(loc, m, index, hint);
    }
    jit::Value* value;
    c10::ClassTypePtr type;
};

struct HostValue : jit::SugaredValue {
    HostValue(jit::Value* self, const HostSelf& described)
        : value(self), host(described), type(host.type) {}

    std::string kind() const override { return "host module"; }
    jit::Value* asValue(const jit::SourceRange&, jit::GraphFunction&) override { return value; }

    bool has(const std::string& field) const {
        return type->hasAttribute(field) || type->findConstant(field) || type->findMethod(field) ||
               host.attributes.supplied.contains(field) || host.attributes.passed.contains(field);
    }
    bool hasAttr(const jit::SourceRange& loc, jit::GraphFunction&,
                 const std::string& field) override {
        if (has(field)) {
            return true;
        }
        if (may_be_traced(*type) && !host.kept_by_traces.contains(field)) {
            throw(jit::ErrorReport(loc)
                  << "whether the original had " << field
                  << " cannot be told: the saved class may be a trace, which keeps only tensors "
                     "and modules. "
                  << how_to_supply(field));
        }
        return false;
    }

    Value attr(const jit::SourceRange& loc, jit::GraphFunction& m,
               const std::string& field) override {
        if (const auto input = host.attributes.passed.find(field);
            input != host.attributes.passed.end()) {
            return std::make_shared<jit::SimpleValue>(m.graph()->inputs().at(input->second));
        }
        if (type->hasAttribute(field)) {
            jit::Value* got = m.graph()->insertGetAttr(value, field);
            got->node()->setSourceRange(loc);
            if (got->type()->is_module()) {
                return std::make_shared<SubmoduleValue>(got);
            }
            return std::make_shared<jit::SimpleValue>(got);
        }
        if (const auto constant = type->findConstant(field)) {
            return std::make_shared<jit::SimpleValue>(m.graph()->insertConstant(*constant, loc));
        }
        if (const auto given = host.attributes.supplied.find(field);
            given != host.attributes.supplied.end()) {
            return std::make_shared<jit::SimpleValue>(
                m.graph()->insertConstant(given->second, loc));
        }
        if (field.starts_with("forward") && type->findMethod(field) != nullptr) {
            throw(jit::ErrorReport(loc) << "the layer calls the module that it replaces");
        }
        if (type->findMethod(field) != nullptr) {
            return std::make_shared<jit::MethodValue>(value, field);
        }
        const auto why = host.attributes.withheld.find(field);
        throw(jit::ErrorReport(loc)
              << "the saved " << unmangled(type->name()->qualifiedName()) << " has no attribute "
              << field << (why == host.attributes.withheld.end() ? "" : " (" + why->second + ")")
              << "; it has " << attribute_names() << ". " << how_to_supply(field));
    }

    std::string how_to_supply(const std::string& field) const {
        return host.kept_by_traces.contains(field)
                   ? "The layer declares it as a tensor or module, which no manifest can supply"
                   : "The manifest can supply a number, flag or text: attributes = { " + field +
                         " = … }";
    }

    void setAttr(const jit::SourceRange& loc, jit::GraphFunction&, const std::string& field,
                 jit::Value*) override {
        throw(jit::ErrorReport(loc)
              << "the layer assigns self." << field << "; layers keep no state");
    }

    Value call(const jit::SourceRange& loc, jit::GraphFunction&, at::ArrayRef<jit::NamedValue>,
               at::ArrayRef<jit::NamedValue>, size_t) override {
        throw(jit::ErrorReport(loc) << "the layer calls the module that it replaces");
    }

private:
    std::string attribute_names() const {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < type->numAttributes(); ++i) {
            const std::string& name = type->getAttributeName(i);
            if (!name.starts_with("_")) {
                names.push_back(name);
            }
        }
        for (std::size_t i = 0; i < type->numConstants(); ++i) {
            names.push_back(type->getConstantName(i));
        }
        return base::join(names, ", ");
    }

public:
    jit::Value* value;
    HostSelf host;
    c10::ClassTypePtr type;
};

}  // namespace

Value HostSelf::makeSugared(jit::Value* v) const {
    v->setType(type);
    return std::make_shared<HostValue>(v, *this);
}

Value module_value(jit::Value* value, const HostSelf* host) {
    if (host != nullptr && *value->type() == *host->type) {
        return std::make_shared<HostValue>(value, *host);
    }
    return std::make_shared<SubmoduleValue>(value);
}

}  // namespace twinkle::runtime
