#include "runtime/exported/checks.h"

#include "base/text.h"

#include <algorithm>

namespace twinkle::runtime::exported {

namespace jit = torch::jit;

std::string plain(const std::string& text) {
    std::string made = base::printable(text.substr(0, 500));
    std::replace(made.begin(), made.end(), '{', '(');
    std::replace(made.begin(), made.end(), '}', ')');
    return made;
}

void write_check(jit::Graph& graph, jit::Value* holds, const std::string& message,
                 const std::vector<jit::Value*>& values) {
    jit::Node* check = graph.insertNode(graph.create(c10::prim::If, {holds}, 0));
    check->addBlock();
    const jit::WithInsertPoint inside(check->addBlock());
    jit::Value* text = graph.insertConstant(message);
    if (!values.empty()) {
        std::vector<jit::Value*> parts{text};
        parts.insert(parts.end(), values.begin(), values.end());
        text = graph.insertNode(graph.create(c10::aten::format, parts))->output();
        text->setType(c10::StringType::get());
    }
    jit::Value* none = graph.insertNode(graph.createNone())->output();
    graph.insertNode(graph.create(c10::prim::RaiseException, {text, none}, 0));
}

}  // namespace twinkle::runtime::exported
