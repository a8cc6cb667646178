#pragma once
// The code that a trace has inlined into one graph: runs of nodes, the calls they may consist of,
// and these as regions.

#include "runtime/graph/function_calls.h"
#include "runtime/trace/region.h"
#include "runtime/trace/run_splits.h"
#include "runtime/trace/traced_calls.h"

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace twinkle::runtime {

// The nodes of one call, with what is needed to close them as a region, now or after the graph
// around them has changed.
struct InlinedCall {
    std::vector<torch::jit::Node*> nodes;
    std::unordered_set<const torch::jit::Node*> shared;
};

class InlinedCode {
public:
    // Reads stacks through `calls`, which must outlive it.
    InlinedCode(torch::jit::Graph& graph, TracedCalls& calls);
    InlinedCode(InlinedCode&&) = default;
    InlinedCode(const InlinedCode&) = delete;  // it points into itself
    InlinedCode& operator=(const InlinedCode&) = delete;
    ~InlinedCode() = default;

    const std::vector<TracedRun>& runs() const { return runs_; }
    // Run number `index` of this function.
    const TracedRun* run(std::size_t function, std::size_t index) const;
    const std::vector<RunSplit>& splits(const TracedRun& run) const;

    InlinedCall call(const TracedRun& run, const RunPart& part) const;
    tl::expected<Region, std::string> close(const InlinedCall& call);

private:
    using Nodes = std::unordered_set<const torch::jit::Node*>;

    void find_words();
    void find_shared();
    void add_shared(const TracedRun& run, std::size_t way, const RunSplit& split);
    bool is_lent(const torch::jit::Node* node, const TracedRun& run, const RunPart& part) const;
    bool is_complete(const TracedRun& run) const;
    void borrow(const torch::jit::Node* node, std::size_t function,
                const std::vector<TraceLabel>& missing, Nodes& into) const;

    TracedCalls& calls_;
    std::vector<TracedRun> runs_;
    std::vector<std::vector<TraceLabel>> words_;  // by function: what its longest call does
    std::vector<std::vector<RunSplit>> splits_;   // by run
    // Nodes of whole calls: the function, and the label within it.
    std::unordered_map<const torch::jit::Node*, std::pair<std::size_t, TraceLabel>> whole_;
    // Nodes whose results an incomplete call needs: the run, and the way of cutting it.
    std::unordered_map<const torch::jit::Node*,
                       std::vector<std::pair<const TracedRun*, std::size_t>>>
        lent_;
    std::set<const torch::jit::Value*> written_;
};

// The regions of the original model that calls have replaced, with the results that the calls give.
// Reads a method once for each function.
class InlinedOriginals {
public:
    explicit InlinedOriginals(const torch::jit::Module& original) : original_(original) {}
    tl::expected<Region, std::string> region_of(const FunctionCall& call);

private:
    struct Code {
        Code(torch::jit::Graph& graph, TracedFunction function)
            : calls({std::move(function)}), code(graph, calls) {}
        TracedCalls calls;
        InlinedCode code;
    };

    Code* code_of(const FunctionCall& call);

    const torch::jit::Module& original_;
    std::map<std::pair<const torch::jit::Function*, std::string>, std::unique_ptr<Code>> known_;
};

}  // namespace twinkle::runtime
