// Objects that a module makes when it is imported: functools.partial, and one that passes on what
// it is asked for to another.

#include "runtime/source/package_values.h"
#include "runtime/source/partial_value.h"

#include <algorithm>
#include <set>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

namespace {

using Value = std::shared_ptr<jit::SugaredValue>;

const py::FunctionDef* method_named(const py::ClassDef& type, std::string_view name) {
    const py::FunctionDef* found = nullptr;
    for (const py::StmtPtr& statement : type.body) {
        const auto* method = py::as<py::FunctionDef>(statement);
        if (method != nullptr && method->name == name) {
            found = method;
        }
    }
    return found;
}

// The one statement of a method with these two parameters and nothing else.
const py::Stmt* only_statement(const py::FunctionDef* method) {
    if (method == nullptr || !method->decorator_list.empty() || method->args.vararg ||
        method->args.kwarg || !method->args.posonlyargs.empty() ||
        !method->args.kwonlyargs.empty() || !method->args.defaults.empty() ||
        method->args.args.size() != 2) {
        return nullptr;
    }
    const py::Stmt* only = nullptr;
    for (const py::StmtPtr& statement : method->body) {
        const auto* text = py::as<py::ExprStmt>(statement);
        const auto* constant = text ? py::as<py::Constant>(text->value) : nullptr;
        if (constant == nullptr && only != nullptr) {
            return nullptr;
        }
        only = constant == nullptr ? statement.get() : only;
    }
    return only;
}

bool is_name(const py::Expr& expr, const std::string& id) {
    const auto* name = py::as<py::Name>(expr);
    return name != nullptr && name->id == id;
}

// self.target, of __init__(self, value): self.target = value
std::string kept_attribute(const py::FunctionDef& init) {
    const auto* assign = py::as<py::Assign>(only_statement(&init));
    const auto* target = assign && assign->targets.size() == 1
                             ? py::as<py::Attribute>(assign->targets.front())
                             : nullptr;
    const bool keeps = target != nullptr && is_name(*target->value, init.args.args[0].arg) &&
                       is_name(*assign->value, init.args.args[1].arg);
    return keeps ? target->attr : "";
}

// __getattr__(self, name): return getattr(self.target, name)
bool forwards(const py::FunctionDef& getattr, const std::string& target) {
    const auto* result = py::as<py::Return>(only_statement(&getattr));
    const auto* call = result ? py::as<py::Call>(result->value.get()) : nullptr;
    if (call == nullptr || !is_name(*call->func, "getattr") || call->args.size() != 2 ||
        !call->keywords.empty()) {
        return false;
    }
    const auto* owner = py::as<py::Attribute>(call->args[0]);
    return owner != nullptr && owner->attr == target &&
           is_name(*owner->value, getattr.args.args[0].arg) &&
           is_name(*call->args[1], getattr.args.args[1].arg);
}

struct ForwardingValue : jit::SugaredValue {
    ForwardingValue(Value to, const py::ClassDef& definition, std::string attribute)
        : target(std::move(to)), type(definition) {
        own.insert(std::move(attribute));
        for (const py::StmtPtr& statement : type.body) {
            if (const auto* method = py::as<py::FunctionDef>(statement)) {
                own.insert(method->name);
            }
        }
    }
    std::string kind() const override { return "object of the Python class " + type.name; }
    Value attr(const jit::SourceRange& loc, jit::GraphFunction& m,
               const std::string& field) override {
        if (own.contains(field) || field.starts_with("__")) {
            throw(jit::ErrorReport(loc) << field << " of the " << kind());
        }
        return target->attr(loc, m, field);
    }
    Value target;
    const py::ClassDef& type;
    std::set<std::string> own;
};

}  // namespace

Value Compilation::partial(const PackageModule& module, const std::string& name,
                           const py::Call& call, const jit::SourceRange& loc, int depth) {
    if (call.args.empty() || external_name(module, {}, *call.func) != "functools.partial") {
        return nullptr;
    }
    const auto value = [&](const py::Expr& one) {
        if (py::as<py::Starred>(one) != nullptr) {
            refuse(module, one, "a starred argument of functools.partial");
        }
        Value result = value_of_expression(module, name, one, loc, depth + 1);
        if (result == nullptr) {
            refuse(module, one, "an argument of functools.partial that has no meaning");
        }
        return result;
    };
    std::vector<BoundArgument> bound;
    for (std::size_t i = 1; i < call.args.size(); ++i) {
        bound.push_back({"", value(*call.args[i])});
    }
    for (const py::Keyword& keyword : call.keywords) {
        if (keyword.arg.empty()) {
            refuse(module, keyword, "a ** argument");
        }
        bound.push_back({keyword.arg, value(*keyword.value)});
    }
    return partial_value(value(*call.args.front()), std::move(bound));
}

// ops = Initialized(raw_ops), of a class whose __getattr__ asks raw_ops. One that does anything
// besides would do it at every use, which is lost here.
Value Compilation::forwarding_object(const PackageModule& module, const std::string& name,
                                     const py::Call& call, const jit::SourceRange& loc, int depth) {
    const auto* called = py::as<py::Name>(call.func);
    const auto found =
        called ? package_->find(module.name, called->id) : KernelPackage::Definition{};
    const auto* type = found.module ? std::get_if<const py::ClassDef*>(found.binding) : nullptr;
    const auto* getattr = type ? method_named(**type, "__getattr__") : nullptr;
    if (getattr == nullptr) {
        return nullptr;
    }
    const auto* init = method_named(**type, "__init__");
    const std::string target = only_statement(init) != nullptr ? kept_attribute(*init) : "";
    const bool plain =
        std::all_of((*type)->body.begin(), (*type)->body.end(), [](const py::StmtPtr& statement) {
            const auto* text = py::as<py::ExprStmt>(statement);
            return py::as<py::FunctionDef>(statement) != nullptr ||
                   (text != nullptr && py::as<py::Constant>(text->value) != nullptr);
        });
    const bool getattr_is_own = package_->find(found.module->name, "getattr").module != nullptr;
    if (!plain || target.empty() || getattr_is_own || !(*type)->bases.empty() ||
        !(*type)->keywords.empty() || !(*type)->decorator_list.empty() ||
        only_statement(getattr) == nullptr || !forwards(*getattr, target) ||
        method_named(**type, "__getattribute__") != nullptr) {
        refuse(*found.module, *getattr,
               "the __getattr__ of " + (*type)->name + " does more than ask another object");
    }
    if (call.args.size() != 1 || !call.keywords.empty()) {
        refuse(module, call, "makes an object of the Python class " + (*type)->name);
    }
    Value to = value_of_expression(module, name, *call.args.front(), loc, depth + 1);
    if (to == nullptr) {
        refuse(module, call, "makes an object of the Python class " + (*type)->name);
    }
    return std::make_shared<ForwardingValue>(std::move(to), **type, target);
}

}  // namespace twinkle::runtime
