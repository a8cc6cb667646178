#include "runtime/model/marker.h"

#include "base/text.h"
#include "runtime/model/needed_kernel.h"
#include "twinkle/error.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/custom_operator.h>
#include <torch/csrc/jit/runtime/graph_iterator.h>

#include <algorithm>

namespace twinkle::runtime {

namespace {

constexpr std::string_view prefix = "twinkle.kernel/1";

// The kernels are checked when the model is loaded; the call itself does nothing. CONSERVATIVE
// keeps it through dead code elimination and freezing.
const torch::jit::RegisterOperators operator_registration({torch::jit::Operator(
    "twinkle::needs_kernel(str marker, Any kernel) -> ()",
    [](torch::jit::Stack& stack) { torch::jit::drop(stack, 2); },
    c10::AliasAnalysisKind::CONSERVATIVE)});
const auto operator_name = c10::Symbol::fromQualString("twinkle::needs_kernel");

bool is_plain(std::string_view value) {
    return !value.empty() && value.size() <= 200 &&
           value.find_first_not_of(
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./@+") ==
               std::string_view::npos;
}

constexpr std::string_view marker_literal = "\"twinkle.kernel/1 ";

// The serialized source has a marker as a string literal, without quotes or backslashes inside.
void collect_markers(const std::string& code, std::vector<RequiredKernel>& found) {
    for (auto at = code.find(marker_literal); at != std::string::npos;
         at = code.find(marker_literal, at)) {
        const auto begin = at + 1;
        const auto end = code.find('"', begin);
        if (end == std::string::npos) {
            return;
        }
        at = end;
        const auto kernel = parse_marker(std::string_view(code).substr(begin, end - begin));
        const bool known = kernel && std::any_of(found.begin(), found.end(), [&](const auto& one) {
                               return one.build_id == kernel->build_id;
                           });
        if (kernel && !known) {
            found.push_back(*kernel);
        }
    }
}

}  // namespace

bool is_marked(torch::jit::Graph& graph) {
    auto shared = graph.shared_from_this();
    torch::jit::DepthFirstGraphNodeIterator nodes(shared);
    for (const torch::jit::Node* node = nodes.next(); node != nullptr; node = nodes.next()) {
        if (node->kind() == operator_name) {
            return true;
        }
    }
    return false;
}

std::string marker_text(const RequiredKernel& kernel) {
    return std::string(prefix) + " namespace=" + kernel.op_namespace + " name=" + kernel.name +
           " variant=" + kernel.variant + " build=" + kernel.build_id;
}

std::optional<RequiredKernel> parse_marker(std::string_view text) {
    if (!text.starts_with(prefix)) {
        return std::nullopt;
    }
    RequiredKernel kernel;
    const std::map<std::string_view, std::string*> fields = {{"namespace", &kernel.op_namespace},
                                                             {"name", &kernel.name},
                                                             {"variant", &kernel.variant},
                                                             {"build", &kernel.build_id}};
    for (const std::string& word : base::split(text, ' ')) {
        const auto equals = word.find('=');
        if (equals == std::string::npos) {
            continue;
        }
        const auto field = fields.find(std::string_view(word).substr(0, equals));
        if (field != fields.end() && is_plain(std::string_view(word).substr(equals + 1))) {
            *field->second = word.substr(equals + 1);
        }
    }
    for (const auto& [name, value] : fields) {
        if (value->empty()) {
            throw Error(ErrorCode::malformed, {.what = "the model's kernel marker is damaged",
                                               .where = "",
                                               .why = "it has no usable " + std::string(name) +
                                                      ": " + base::printable(text.substr(0, 200)),
                                               .hint = "kernelize the original model again"});
        }
    }
    return kernel;
}

std::vector<RequiredKernel> markers_in(const std::vector<CodeFile>& code) {
    std::vector<RequiredKernel> found;
    for (const CodeFile& file : code) {
        collect_markers(file.text, found);
    }
    return found;
}

namespace {

bool is_marked(const torch::jit::Graph& graph, const std::string& text) {
    const auto nodes = graph.nodes();
    return std::any_of(nodes.begin(), nodes.end(), [&](const torch::jit::Node* node) {
        const auto marker =
            node->kind() == operator_name ? torch::jit::toIValue(node->input(0)) : std::nullopt;
        return marker && marker->isString() && marker->toStringRef() == text;
    });
}

void mark_methods(const torch::jit::Module& module, const std::string& text,
                  const c10::IValue& kernel) {
    for (torch::jit::Function* method : module.type()->methods()) {
        auto graph = torch::jit::toGraphFunction(*method).graph();
        if (is_marked(*graph, text)) {
            continue;
        }
        torch::jit::WithInsertPoint at_start(*graph->nodes().begin());
        auto* marker = graph->insertConstant(text);
        auto* object = graph->insertConstant(kernel);
        graph->insertNode(graph->create(operator_name, {marker, object}, 0));
    }
    // A container has no method itself, but its children can be called.
    if (module.type()->methods().empty()) {
        for (const torch::jit::Module& child : module.children()) {
            mark_methods(child, text, kernel);
        }
    }
}

}  // namespace

void mark_model(torch::jit::Module& root, const RequiredKernel& kernel) {
    const std::string text = marker_text(kernel);
    mark_model(root, text, needed_kernel(text));
}

void mark_model(torch::jit::Module& root, const std::string& text, const c10::IValue& object) {
    mark_methods(root, text, object);
}

}  // namespace twinkle::runtime
