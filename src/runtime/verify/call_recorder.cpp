#include "runtime/verify/call_recorder.h"

#include "runtime/rewrite/sites.h"

#include <torch/csrc/jit/runtime/custom_operator.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

struct Recording {
    std::mutex mutex;
    std::size_t max_calls = 0;
    std::unordered_map<const void*, std::string> sites;  // by the object of the instance
    std::map<std::string, std::vector<RecordedCall>> calls;
};

Recording& recording() {
    static auto& instance = *new Recording();
    return instance;
}

c10::IValue copied(const c10::IValue& value) {
    if (value.isTensor()) {
        return value.toTensor().detach().clone();
    }
    if (value.isTensorList()) {
        std::vector<at::Tensor> tensors;
        for (const at::Tensor& tensor : value.toTensorVector()) {
            tensors.push_back(tensor.detach().clone());
        }
        return tensors;
    }
    if (value.isTuple()) {
        std::vector<c10::IValue> elements;
        for (const c10::IValue& element : value.toTupleRef().elements()) {
            elements.push_back(copied(element));
        }
        return c10::ivalue::Tuple::create(std::move(elements));
    }
    return value;
}

void record(jit::Stack& stack) {
    const c10::IValue inputs = jit::pop(stack);
    const std::string method = jit::pop(stack).toStringRef();
    const c10::IValue self = jit::pop(stack);
    Recording& into = recording();
    const std::scoped_lock lock(into.mutex);
    const auto site = into.sites.find(&self.toObjectRef());
    if (site == into.sites.end()) {
        return;  // another instance of the class
    }
    auto& calls = into.calls[site->second];
    const auto of_this_method =
        std::count_if(calls.begin(), calls.end(),
                      [&](const RecordedCall& call) { return call.method == method; });
    if (static_cast<std::size_t>(of_this_method) < into.max_calls) {
        calls.push_back({method, copied(inputs).toTupleRef().elements().vec()});
    }
}

const jit::RegisterOperators registration(
    {jit::Operator("twinkle::record_call(Any self, str method, Any inputs) -> ()", record,
                   c10::AliasAnalysisKind::CONSERVATIVE)});

// Instances share their methods: which one is called is known when it is.
void instrument(const c10::ClassTypePtr& type) {
    for (jit::Function* method : type->methods()) {
        if (!method->name().starts_with("forward")) {
            continue;
        }
        auto graph = jit::toGraphFunction(*method).graph();
        jit::WithInsertPoint at_start(*graph->nodes().begin());
        std::vector<jit::Value*> inputs(graph->inputs().begin() + 1, graph->inputs().end());
        jit::Value* tuple = graph->insertNode(graph->createTuple(inputs))->output();
        graph->insertNode(
            graph->create(c10::Symbol::fromQualString("twinkle::record_call"),
                          {graph->inputs()[0], graph->insertConstant(method->name()), tuple}, 0));
    }
}

}  // namespace

std::map<std::string, std::vector<RecordedCall>> record_calls(
    jit::Module& model, const std::vector<std::string>& sites, std::size_t max_calls,
    const std::function<void(jit::Module&)>& run) {
    std::unordered_map<const void*, std::string> objects;
    std::unordered_set<const void*> instrumented;
    for (const std::string& site : sites) {
        const jit::Module module = instance_at(model, site);
        objects.emplace(module._ivalue().get(), site);
        if (instrumented.insert(module.type().get()).second) {
            instrument(module.type());
        }
    }
    {
        Recording& into = recording();
        const std::scoped_lock lock(into.mutex);
        into.calls.clear();
        into.sites = std::move(objects);
        into.max_calls = max_calls;
    }
    run(model);
    Recording& into = recording();
    const std::scoped_lock lock(into.mutex);
    return std::move(into.calls);
}

}  // namespace twinkle::runtime
