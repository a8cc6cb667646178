#include "runtime/source/autograd_function.h"

#include "runtime/source/autograd_compiler.h"
#include "runtime/source/known_value.h"

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

namespace {

using Value = std::shared_ptr<jit::SugaredValue>;

struct ApplyValue : jit::SugaredValue {
    ApplyValue(std::shared_ptr<Compilation> in, const ClassSource& function)
        : compilation(std::move(in)), source(function) {}
    std::string kind() const override { return source.type->name + ".apply"; }

    Value call(const jit::SourceRange& loc, jit::GraphFunction& m,
               at::ArrayRef<jit::NamedValue> args, at::ArrayRef<jit::NamedValue> kwargs,
               size_t n_binders) override {
        if (!kwargs.empty()) {
            throw(jit::ErrorReport(loc) << kind() << " takes no named arguments");
        }
        jit::Graph& graph = *m.graph();
        std::vector<jit::Value*> values;
        std::vector<AppliedArgument> applied;
        std::string key = source.module->name + ":" + source.type->name;
        for (const jit::NamedValue& argument : args) {
            values.push_back(argument.value(graph));
            applied.push_back(
                {c10::unshapedType(values.back()->type()), known_constant(values.back())});
            const auto& constant = applied.back().constant;
            key += "," + compilation->name_of(applied.back().type) +
                   (constant ? "=" + constant_key(*constant) : std::string());
        }
        if (!compilation->trains()) {
            if (jit::Function* forward = plain_forward(key, applied)) {
                return jit::FunctionValue(forward).call(loc, m, args, {}, n_binders);
            }
        }
        return node(loc, graph, context_class(key, applied), values);
    }

    template <class Known, class Compile>
    auto compiled_once(Known& known, const std::string& key, const Compile& compile) {
        if (const auto found = known.find(key); found != known.end()) {
            return found->second;
        }
        // A Function that applies itself would be compiled without end.
        [[maybe_unused]] const auto guard = compilation->enter(
            *source.module, *source.type, "apply:" + key, source.type->name + ".apply");
        return known[key] = compile();
    }

    jit::Function* plain_forward(const std::string& key,
                                 const std::vector<AppliedArgument>& applied) {
        return compiled_once(compilation->autograd_cache().forwards, key, [&] {
            return FunctionCompiler(*compilation, source, applied).plain_forward();
        });
    }

    c10::ClassTypePtr context_class(const std::string& key,
                                    const std::vector<AppliedArgument>& applied) {
        return compiled_once(compilation->autograd_cache().classes, key, [&] {
            return FunctionCompiler(*compilation, source, applied).context_class();
        });
    }

    static Value node(const jit::SourceRange& loc, jit::Graph& graph, const c10::ClassTypePtr& type,
                      const std::vector<jit::Value*>& values) {
        jit::Value* ctx = graph.insertNode(graph.createObject(type))->output();
        jit::Value* arguments = graph.insertNode(graph.createTuple(values))->output();
        const auto tuple =
            type->getMethod("forward").getSchema().returns().at(0).type()->cast<c10::TupleType>();
        const char* op = tuple ? "twinkle::autograd_apply_many" : "twinkle::autograd_apply";
        jit::Value* output = graph.insert(c10::Symbol::fromQualString(op), {ctx, arguments});
        output->node()->setSourceRange(loc);
        if (tuple) {
            const auto outputs =
                graph.insertNode(graph.createListUnpack(output, tuple->elements().size()))
                    ->outputs();
            output = graph.insertNode(graph.createTuple(outputs))->output();
        }
        return std::make_shared<jit::SimpleValue>(output);
    }

    std::shared_ptr<Compilation> compilation;
    ClassSource source;
};

struct FunctionClassValue : jit::SugaredValue {
    FunctionClassValue(std::shared_ptr<Compilation> in, const ClassSource& function)
        : compilation(std::move(in)), source(function) {}
    std::string kind() const override { return "the autograd.Function " + source.type->name; }
    Value attr(const jit::SourceRange& loc, jit::GraphFunction&,
               const std::string& field) override {
        if (field == "apply") {
            return std::make_shared<ApplyValue>(compilation, source);
        }
        throw(jit::ErrorReport(loc) << "of " << kind() << " only apply is used, not " << field);
    }
    std::shared_ptr<Compilation> compilation;
    ClassSource source;
};

}  // namespace

bool is_autograd_function(KernelPackage& package, const PackageModule& module,
                          const py::ClassDef& type) {
    return is_autograd_function(package, ClassSource{&module, &type});
}

Value autograd_function_value(std::shared_ptr<Compilation> compilation, const PackageModule& module,
                              const py::ClassDef& type) {
    return std::make_shared<FunctionClassValue>(std::move(compilation),
                                                ClassSource{&module, &type});
}

}  // namespace twinkle::runtime
