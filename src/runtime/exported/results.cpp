#include "runtime/exported/results.h"

#include "archive/json_reader.h"
#include "runtime/exported/module_tree.h"
#include "runtime/exported/pytree.h"

#include <algorithm>
#include <cctype>

namespace twinkle::runtime::exported {

using namespace archive;
namespace jit = torch::jit;

namespace {

bool can_be_a_field(const std::string& name) {
    return !name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) != 0 &&
           std::all_of(name.begin(), name.end(),
                       [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

class ResultWriter {
public:
    ResultWriter(jit::Graph& graph, std::vector<jit::Value*> leaves, jit::CompilationUnit& unit)
        : graph_(graph), leaves_(std::move(leaves)), unit_(unit) {}

    jit::Value* write(const Tree& tree) {
        if (tree.kind == Tree::Kind::leaf) {
            return leaves_[next_++];
        }
        std::vector<jit::Value*> parts;
        for (const Tree& child : tree.children) {
            parts.push_back(write(child));
        }
        const bool alike =
            !parts.empty() && std::all_of(parts.begin(), parts.end(), [&](const jit::Value* one) {
                return *one->type() == *parts.front()->type();
            });
        if (tree.kind == Tree::Kind::list && alike) {
            return graph_.insertNode(graph_.createList(parts.front()->type(), parts))->output();
        }
        if (tree.kind == Tree::Kind::dict && alike) {
            std::vector<jit::Value*> keys;
            for (const std::string& key : tree.keys) {
                keys.push_back(graph_.insertConstant(key));
            }
            return graph_
                .insertNode(
                    graph_.createDict(c10::StringType::get(), parts.front()->type(), keys, parts))
                ->output();
        }
        return graph_.insertNode(graph_.createTuple(parts, type_for(tree, parts)))->output();
    }

private:
    c10::TupleTypePtr type_for(const Tree& tree, const std::vector<jit::Value*>& parts) {
        std::vector<c10::TypePtr> types;
        for (const jit::Value* part : parts) {
            types.push_back(part->type());
        }
        if (tree.keys.empty() || !std::all_of(tree.keys.begin(), tree.keys.end(), can_be_a_field)) {
            return nullptr;  // it has no name
        }
        const std::string name = tree.type == "builtins.dict" ? "Result" : tree.type;
        auto type =
            c10::TupleType::createNamed(unit_.mangle(class_name_for(name)), tree.keys, types);
        unit_.register_type(type);
        return type;
    }

    jit::Graph& graph_;
    std::vector<jit::Value*> leaves_;
    jit::CompilationUnit& unit_;
    std::size_t next_ = 0;
};

}  // namespace

jit::Value* write_result(jit::Graph& graph, const Program& program, NodeWriter& writer,
                         jit::CompilationUnit& unit) {
    std::vector<jit::Value*> leaves;
    Node result;  // for what the writer has to say
    result.name = "result";
    for (const OutputSpec& output : program.outputs) {
        if (output.kind == OutputSpec::Kind::user) {
            leaves.push_back(writer.argument(result, output.value, nullptr));
        }
    }
    const Tree tree = read_tree(program.out_spec, program.namedtuple_fields);
    if (tree.leaves() != leaves.size()) {
        throw InvalidJson("the nesting of its outputs does not fit to its outputs");
    }
    return ResultWriter(graph, std::move(leaves), unit).write(tree);
}

}  // namespace twinkle::runtime::exported
