#include "runtime/trace/traced_calls.h"
#include "runtime/graph/format.h"

#include "runtime/graph/function_calls.h"
#include "runtime/graph/sites.h"

#include <algorithm>
#include <span>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

bool is_file_of(const std::string& file, const std::string& target_module) {
    std::string path = "/" + target_module;
    std::replace(path.begin(), path.end(), '.', '/');
    const std::string rooted = "/" + file;
    return rooted.ends_with(path + ".py") || rooted.ends_with(path + "/__init__.py");
}

// "modeling_llama.py:71|…"
std::string text_of(std::span<const StackFrame> frames) {
    std::string text;
    for (const StackFrame& frame : frames) {
        text += fmt::format("{}:{}|", frame.file, frame.line);
    }
    return text;
}

}  // namespace

std::vector<TracedFunction> traced_functions(const Mapping& mapping) {
    std::vector<TracedFunction> functions;
    for (const MappedFunction& one : mapping.functions) {
        functions.push_back({one.target_module, one.func_name});
    }
    return functions;
}

TracedCalls::TracedCalls(std::vector<TracedFunction> functions) : functions_(std::move(functions)) {
    for (std::size_t i = 0; i < functions_.size(); ++i) {
        by_name_.emplace(functions_[i].func_name, i);
    }
}

std::uint32_t TracedCalls::number_of(const std::string& text) {
    return numbers_.emplace(text, static_cast<std::uint32_t>(numbers_.size())).first->second;
}

// For each function its outermost frame below the forward of the module. The stack goes up to the
// root of the model, so that without this limit every module that a function calls would look like
// a call of it.
const std::vector<TracedCalls::Place>& TracedCalls::places_of(
    const std::vector<StackFrame>& stack) {
    const auto [entry, first] = places_.try_emplace(&stack);
    if (!first) {
        return entry->second;
    }
    const std::span<const StackFrame> frames = functions_around(stack);
    for (std::size_t i = frames.size(); i-- > 0;) {
        const auto [begin, end] = by_name_.equal_range(frames[i].function);
        for (auto one = begin; one != end; ++one) {
            const bool known =
                std::any_of(entry->second.begin(), entry->second.end(),
                            [&](const Place& place) { return place.function == one->second; });
            if (!known && is_file_of(frames[i].file, functions_[one->second].target_module)) {
                entry->second.push_back(
                    {one->second, number_of(frames[i].file + "|" + text_of(frames.subspan(i + 1))),
                     number_of(text_of(frames.first(i + 1)))});
            }
        }
    }
    return entry->second;
}

std::vector<TracedRun> TracedCalls::in(jit::Graph& graph) {
    std::vector<TracedRun> runs;
    if (functions_.empty()) {
        return runs;
    }
    std::size_t position = 0;  // among the nodes that have a stack
    std::vector<std::pair<std::size_t, std::size_t>> last(functions_.size());  // run, position
    for (jit::Node* node : graph.nodes()) {
        // Skips constants, which are hoisted, and nodes without a stack, which tell nothing.
        if (node->kind() == c10::prim::Constant) {
            continue;
        }
        const auto& stack = stacks_.stack_of(node);
        if (stack.empty()) {
            continue;
        }
        ++position;
        for (const Place& place : places_of(stack)) {
            if (node->kind() == c10::prim::CallFunction &&
                stands_for(node, functions_[place.function].full_name())) {
                continue;
            }
            auto& [run, seen] = last[place.function];
            if (seen == 0 || seen + 1 != position || runs[run].caller != place.caller) {
                run = runs.size();
                runs.push_back({place.function, place.caller, {}, {}});
            }
            seen = position;
            runs[run].nodes.push_back(node);
            runs[run].labels.push_back({node->kind(), place.lines});
        }
    }
    return runs;
}

std::set<std::size_t> TracedCalls::in(const jit::Module& model) {
    std::set<std::size_t> found;
    for (const Instance& instance : instances_of(model)) {
        for (jit::Function* method : instance.module.type()->methods()) {
            if (auto* compiled = jit::tryToGraphFunction(*method)) {
                for (const TracedRun& run : in(*compiled->graph())) {
                    found.insert(run.function);
                }
            }
        }
    }
    return found;
}

}  // namespace twinkle::runtime
