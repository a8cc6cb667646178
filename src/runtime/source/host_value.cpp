#include "runtime/source/host_value.h"

#include "base/text.h"
#include "runtime/rewrite/class_name.h"

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using Value = std::shared_ptr<jit::SugaredValue>;

// A submodule of the host: calling it is calling its forward.
struct SubmoduleValue : jit::SugaredValue {
    explicit SubmoduleValue(jit::Value* module) : value(module) {}
    std::string kind() const override { return "submodule"; }
    jit::Value* asValue(const jit::SourceRange&, jit::GraphFunction&) override { return value; }
    bool hasAttr(const jit::SourceRange& loc, jit::GraphFunction& m,
                 const std::string& field) override {
        return jit::SimpleValue(value).hasAttr(loc, m, field);
    }
    Value attr(const jit::SourceRange& loc, jit::GraphFunction& m,
               const std::string& field) override {
        const auto type = value->type()->cast<c10::ClassType>();
        const auto attribute = type ? type->findAttribute(field) : nullptr;
        Value found = std::make_shared<jit::SimpleValue>(value)->attr(loc, m, field);
        if (attribute && attribute->is_module()) {
            return std::make_shared<SubmoduleValue>(found->asValue(loc, m));
        }
        return found;
    }
    Value call(const jit::SourceRange& loc, jit::GraphFunction& m,
               at::ArrayRef<jit::NamedValue> args, at::ArrayRef<jit::NamedValue> kwargs,
               size_t n_binders) override {
        const auto type = value->type()->cast<c10::ClassType>();
        if (type && (!type->getForwardHooks().empty() || !type->getForwardPreHooks().empty())) {
            throw(jit::ErrorReport(loc) << "the submodule " << value->debugName()
                                        << " has hooks, which this call would skip");
        }
        return std::make_shared<jit::SimpleValue>(value)
            ->attr(loc, m, "forward")
            ->call(loc, m, args, kwargs, n_binders);
    }
    jit::Value* value;
};

struct HostValue : jit::SugaredValue {
    HostValue(jit::Value* self, const c10::ClassTypePtr& class_type, const HostAttributes& more)
        : value(self), type(class_type), host(more) {}

    std::string kind() const override { return "the host module"; }
    jit::Value* asValue(const jit::SourceRange&, jit::GraphFunction&) override { return value; }

    bool hasAttr(const jit::SourceRange&, jit::GraphFunction&, const std::string& field) override {
        return type->hasAttribute(field) || type->findConstant(field) || type->findMethod(field) ||
               host.supplied.contains(field) || host.passed.contains(field);
    }

    Value attr(const jit::SourceRange& loc, jit::GraphFunction& m,
               const std::string& field) override {
        if (const auto input = host.passed.find(field); input != host.passed.end()) {
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
        if (const auto given = host.supplied.find(field); given != host.supplied.end()) {
            return std::make_shared<jit::SimpleValue>(
                m.graph()->insertConstant(given->second, loc));
        }
        if (type->findMethod(field) != nullptr) {
            return std::make_shared<jit::MethodValue>(value, field);
        }
        const auto why = host.withheld.find(field);
        throw(jit::ErrorReport(loc)
              << "the saved " << unmangled(type->name()->qualifiedName()) << " has no attribute "
              << field << (why == host.withheld.end() ? "" : " (" + why->second + ")")
              << "; it has " << attribute_names() << ". The manifest can supply it: attributes = { "
              << field << " = … }");
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
    c10::ClassTypePtr type;
    HostAttributes host;
};

}  // namespace

Value HostSelf::makeSugared(jit::Value* v) const {
    v->setType(type);
    return std::make_shared<HostValue>(v, type, attributes);
}

}  // namespace twinkle::runtime
