#include "runtime/trace/inlined_code.h"

#include "runtime/graph/forward_methods.h"
#include "runtime/graph/sites.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using Labels = std::span<const TraceLabel>;

Labels labels_of(const TracedRun& run, const RunPart& part) {
    return Labels(run.labels).subspan(part.begin, part.count);
}

// The labels of `word` that this part of a run lacks, if the part has no others.
std::vector<TraceLabel> missing_in(Labels part, Labels word) {
    std::vector<TraceLabel> missing;
    auto next = part.begin();
    for (const TraceLabel& label : word) {
        if (next != part.end() && *next == label) {
            ++next;
        } else {
            missing.push_back(label);
        }
    }
    return next == part.end() ? missing : std::vector<TraceLabel>();
}

}  // namespace

InlinedCode::InlinedCode(jit::Graph& graph, TracedCalls& calls)
    : calls_(calls), runs_(calls.in(graph)), words_(calls.functions().size()) {
    if (!runs_.empty()) {
        written_ = written_roots(graph.block());
        find_words();
        find_shared();
    }
}

const TracedRun* InlinedCode::run(std::size_t function, std::size_t index) const {
    for (const TracedRun& one : runs_) {
        if (one.function == function && index-- == 0) {
            return &one;
        }
    }
    return nullptr;
}

const std::vector<RunSplit>& InlinedCode::splits(const TracedRun& run) const {
    return splits_[static_cast<std::size_t>(&run - runs_.data())];
}

void InlinedCode::find_words() {
    for (const TracedRun& run : runs_) {
        const Labels word = word_of(run.labels);
        if (word.size() > words_[run.function].size()) {
            words_[run.function].assign(word.begin(), word.end());
        }
    }
    for (const TracedRun& run : runs_) {
        splits_.push_back(splits_of(run.labels, words_[run.function]));
    }
}

// Freezing merges equal nodes, even those of two calls: the second one then lacks them.
void InlinedCode::find_shared() {
    for (const TracedRun& run : runs_) {
        const auto& word = words_[run.function];
        for (const RunPart& part : splits(run).front()) {
            if (std::ranges::equal(labels_of(run, part), word)) {
                for (std::size_t i = part.begin; i < part.begin + part.count; ++i) {
                    whole_.emplace(run.nodes[i], std::pair(run.function, run.labels[i]));
                }
            }
        }
    }
    for (const TracedRun& run : runs_) {
        const std::vector<RunSplit>& ways = splits(run);
        for (std::size_t way = 0; way < ways.size(); ++way) {
            add_shared(run, way, ways[way]);
        }
    }
}

void InlinedCode::add_shared(const TracedRun& run, std::size_t way, const RunSplit& split) {
    for (const RunPart& part : split) {
        Nodes borrowed;
        const auto missing = missing_in(labels_of(run, part), words_[run.function]);
        for (std::size_t i = part.begin; !missing.empty() && i < part.begin + part.count; ++i) {
            borrow(run.nodes[i], run.function, missing, borrowed);
        }
        for (const jit::Node* node : borrowed) {
            lent_[node].emplace_back(&run, way);
        }
    }
}

// Whether a call that exists beside `part` lends it: different ways of cutting a run exclude each
// other.
bool InlinedCode::is_lent(const jit::Node* node, const TracedRun& run, const RunPart& part) const {
    const auto known = lent_.find(node);
    return known != lent_.end() &&
           std::any_of(known->second.begin(), known->second.end(), [&](const auto& borrower) {
               if (borrower.first != &run) {
                   return !is_complete(*borrower.first);
               }
               const RunSplit& beside = splits(run)[borrower.second];
               return std::find(beside.begin(), beside.end(), part) != beside.end();
           });
}

// Whether the run, cut into equal parts, has everything that the function computes.
bool InlinedCode::is_complete(const TracedRun& run) const {
    return std::ranges::equal(labels_of(run, splits(run).front().front()), words_[run.function]);
}

// Takes nodes that feed `node` and compute what is missing, no more than one call has.
void InlinedCode::borrow(const jit::Node* node, std::size_t function,
                         const std::vector<TraceLabel>& missing, Nodes& into) const {
    for (const jit::Value* input : node->inputs()) {
        const jit::Node* from = input->node();
        const auto known = whole_.find(from);
        if (into.size() < words_[function].size() && known != whole_.end() &&
            known->second.first == function &&
            std::find(missing.begin(), missing.end(), known->second.second) != missing.end() &&
            into.insert(from).second) {
            borrow(from, function, missing, into);
        }
    }
}

InlinedCall InlinedCode::call(const TracedRun& run, const RunPart& part) const {
    InlinedCall call;
    const auto first = run.nodes.begin() + static_cast<std::ptrdiff_t>(part.begin);
    call.nodes.assign(first, first + static_cast<std::ptrdiff_t>(part.count));
    const auto missing = missing_in(labels_of(run, part), words_[run.function]);
    for (const jit::Node* node : call.nodes) {
        if (!missing.empty()) {
            borrow(node, run.function, missing, call.shared);
        }
        if (is_lent(node, run, part)) {
            call.shared.insert(node);
        }
    }
    return call;
}

tl::expected<Region, std::string> InlinedCode::close(const InlinedCall& call) {
    Surroundings around;
    around.is_foreign = [this](const jit::Node* node) { return calls_.has_stack(node); };
    around.shared = call.shared;
    around.written = written_;
    return region_of(call.nodes, around);
}

InlinedOriginals::Code* InlinedOriginals::code_of(const FunctionCall& call) {
    const jit::Module instance = instance_at(original_, call.path);
    auto* method = instance.type()->findMethod(call.caller->name());
    auto* compiled = method != nullptr ? jit::tryToGraphFunction(*method) : nullptr;
    const auto dot = call.function.rfind('.');
    if (compiled == nullptr || !call.inlined || dot == std::string::npos) {
        return nullptr;
    }
    auto& known = known_[{method, call.function}];
    if (!known) {
        known = std::make_unique<Code>(
            *compiled->graph(),
            TracedFunction{call.function.substr(0, dot), call.function.substr(dot + 1)});
    }
    return known.get();
}

tl::expected<Region, std::string> InlinedOriginals::region_of(const FunctionCall& call) {
    const auto gone = tl::make_unexpected(std::string("the original has no such call"));
    Code* known = code_of(call);
    if (known == nullptr) {
        return gone;
    }
    InlinedCode& code = known->code;
    const TracedRun* run = code.run(0, call.inlined->run);
    const RunPart part{call.inlined->begin, call.inlined->count};
    if (run == nullptr || part.count == 0 || part.begin > run->nodes.size() ||
        part.count > run->nodes.size() - part.begin) {
        return gone;
    }
    auto region = code.close(code.call(*run, part));
    if (region) {
        auto& results = region->results;
        std::erase_if(results, [&, i = 0](const jit::Value*) mutable {
            return (call.inlined->given >> std::min(i++, 63) & 1) == 0;
        });
        if (results.empty()) {
            return gone;
        }
    }
    return region;
}

}  // namespace twinkle::runtime
