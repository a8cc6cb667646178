#include "runtime/verify/call_recorder.h"

#include "runtime/graph/function_calls.h"
#include "runtime/graph/sites.h"

#include <torch/csrc/jit/runtime/custom_operator.h>

#include <algorithm>
#include <mutex>
#include <unordered_set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

struct Recording {
    std::mutex mutex;
    std::size_t max_calls = 0;
    ModelWeights weights;  // inputs that are not copied
    // Key: the object of the instance, and for a call of a function its place in the graphs.
    std::map<std::pair<const void*, std::int64_t>, std::string> sites;
    std::map<std::string, std::vector<RecordedCall>> calls;
};

Recording& recording() {
    static auto& instance = *new Recording();
    return instance;
}

c10::IValue copied(const c10::IValue& value, const ModelWeights& weights) {
    if (value.isTensor()) {
        const at::Tensor tensor = value.toTensor().detach();
        return weights.has(tensor) ? tensor : tensor.clone();
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
            elements.push_back(copied(element, weights));
        }
        return c10::ivalue::Tuple::create(std::move(elements));
    }
    return value;
}

constexpr std::int64_t the_instance = -1;

void record(const c10::IValue& self, std::int64_t place, const std::string& method,
            const c10::IValue& inputs) {
    Recording& into = recording();
    const std::scoped_lock lock(into.mutex);
    const void* object = self.isObject() ? &self.toObjectRef() : nullptr;
    const auto site = into.sites.find({object, place});
    if (site == into.sites.end()) {
        return;  // another instance of the class
    }
    auto& calls = into.calls[site->second];
    const auto of_this_method =
        std::count_if(calls.begin(), calls.end(),
                      [&](const RecordedCall& call) { return call.method == method; });
    if (static_cast<std::size_t>(of_this_method) < into.max_calls) {
        calls.push_back({method, copied(inputs, into.weights).toTupleRef().elements().vec()});
    }
}

void record_method(jit::Stack& stack) {
    const c10::IValue inputs = jit::pop(stack);
    const c10::IValue method = jit::pop(stack);
    record(jit::pop(stack), the_instance, method.toStringRef(), inputs);
}

void record_function(jit::Stack& stack) {
    const c10::IValue inputs = jit::pop(stack);
    const c10::IValue place = jit::pop(stack);
    record(jit::pop(stack), place.toInt(), "forward", inputs);
}

const jit::RegisterOperators registration(
    {jit::Operator("twinkle::record_call(Any self, str method, Any inputs) -> ()", record_method,
                   c10::AliasAnalysisKind::CONSERVATIVE),
     jit::Operator("twinkle::record_function(Any self, int place, Any inputs) -> ()",
                   record_function, c10::AliasAnalysisKind::CONSERVATIVE)});

// Instances share their methods: only at run time is it known which one is called.
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

// Inserts the nodes that record `values` in front of a node; `self`: null for a call that is the
// same for all instances.
std::vector<jit::Node*> instrument(jit::Node* before, jit::Value* self,
                                   at::ArrayRef<jit::Value*> values, std::int64_t place) {
    jit::Graph& graph = *before->owningGraph();
    const jit::WithInsertPoint here(before);
    jit::Value* tuple = graph.insertNode(graph.createTuple(values))->output();
    jit::Value* none = self == nullptr ? graph.insertConstant(c10::IValue()) : nullptr;
    jit::Value* number = graph.insertConstant(place);
    jit::Node* record =
        graph.insertNode(graph.create(c10::Symbol::fromQualString("twinkle::record_function"),
                                      {none != nullptr ? none : self, number, tuple}, 0));
    std::vector<jit::Node*> inserted{tuple->node(), number->node(), record};
    if (none != nullptr) {
        inserted.push_back(none->node());
    }
    return inserted;
}

void instrument(const FunctionCall& call, std::int64_t place) {
    jit::Value* self = call.in_function ? nullptr : call.node->owningGraph()->inputs().at(0);
    instrument(call.node, self, call.node->inputs().slice(1), place);
}

void start(std::map<std::pair<const void*, std::int64_t>, std::string> sites, std::size_t max_calls,
           const ModelWeights& weights = {}) {
    Recording& into = recording();
    const std::scoped_lock lock(into.mutex);
    into.calls.clear();
    into.sites = std::move(sites);
    into.max_calls = max_calls;
    into.weights = weights;
}

std::map<std::string, std::vector<RecordedCall>> stop() {
    Recording& into = recording();
    const std::scoped_lock lock(into.mutex);
    into.sites.clear();
    return std::exchange(into.calls, {});
}

// Removes the inserted nodes on destruction.
class Instrumented {
public:
    explicit Instrumented(const std::vector<Region>& regions) {
        for (std::size_t i = 0; i < regions.size(); ++i) {
            const auto nodes = instrument(regions[i].nodes.back(), nullptr, regions[i].inputs,
                                          static_cast<std::int64_t>(i));
            inserted_.insert(inserted_.end(), nodes.begin(), nodes.end());
        }
    }
    Instrumented(const Instrumented&) = delete;
    Instrumented& operator=(const Instrumented&) = delete;
    ~Instrumented() {
        for (jit::Node* node : inserted_) {
            node->removeAllInputs();
        }
        for (jit::Node* node : inserted_) {
            node->destroy();
        }
    }

private:
    std::vector<jit::Node*> inserted_;
};

}  // namespace

CallRecorder::CallRecorder(jit::Module model, const std::vector<std::string>& sites,
                           const InlinedSites& inlined)
    : model_(std::move(model)), weights_(model_) {
    std::unordered_set<const void*> instrumented;
    std::map<std::string, FunctionCall> calls;
    for (FunctionCall& call : function_calls(model_)) {
        calls.emplace(call.site, std::move(call));
    }
    std::map<const jit::Node*, std::int64_t> places;
    for (const std::string& site : sites) {
        if (const auto call = calls.find(site); call != calls.end()) {
            const auto [place, first] =
                places.emplace(call->second.node, static_cast<std::int64_t>(places.size()));
            const void* object =
                call->second.in_function ? nullptr : call->second.instance._ivalue().get();
            sites_.emplace(std::pair(object, place->second), site);
            if (first) {
                instrument(call->second, place->second);
            }
            continue;
        }
        if (const auto region = inlined.find(site); region != inlined.end()) {
            const auto& [module, what] = region->second;
            const auto [place, first] =
                places.emplace(what.nodes.back(), static_cast<std::int64_t>(places.size()));
            sites_.emplace(std::pair(module._ivalue().get(), place->second), site);
            if (first) {
                instrument(what.nodes.back(), what.nodes.back()->owningGraph()->inputs().at(0),
                           what.inputs, place->second);
            }
            continue;
        }
        const jit::Module module = instance_at(model_, site);
        sites_.emplace(std::pair(module._ivalue().get(), the_instance), site);
        if (instrumented.insert(module.type().get()).second) {
            instrument(module.type());
        }
    }
}

std::map<std::string, std::vector<RecordedCall>> CallRecorder::record(
    std::size_t max_calls, const std::function<void(jit::Module&)>& run) {
    start(sites_, max_calls, weights_);
    try {
        run(model_);
    } catch (...) {
        stop();
        throw;
    }
    return stop();
}

std::vector<std::vector<std::vector<c10::IValue>>> record_regions(
    const std::vector<Region>& regions, std::size_t max_calls, const std::function<void()>& run) {
    const Instrumented instrumented(regions);
    std::map<std::pair<const void*, std::int64_t>, std::string> places;
    for (std::size_t i = 0; i < regions.size(); ++i) {
        places.emplace(std::pair(nullptr, static_cast<std::int64_t>(i)), std::to_string(i));
    }
    start(std::move(places), max_calls);
    run();
    std::vector<std::vector<std::vector<c10::IValue>>> recorded(regions.size());
    for (auto& [place, calls] : stop()) {
        for (RecordedCall& call : calls) {
            recorded[std::stoul(place)].push_back(std::move(call.inputs));
        }
    }
    return recorded;
}

}  // namespace twinkle::runtime
