#include "runtime/patterns/image_operators.h"

#include <algorithm>
#include <string>

namespace twinkle::runtime {

std::unordered_set<c10::Symbol> aten_symbols(std::initializer_list<const char*> names) {
    std::unordered_set<c10::Symbol> all;
    for (const char* name : names) {
        all.insert(symbol((std::string("aten::") + name).c_str()));
    }
    return all;
}

bool passes_layout_on(c10::Symbol op) {
    static const std::unordered_set<c10::Symbol> all = aten_symbols({"conv2d",
                                                                     "batch_norm",
                                                                     "max_pool2d",
                                                                     "avg_pool2d",
                                                                     "adaptive_avg_pool2d",
                                                                     "cat",
                                                                     "chunk",
                                                                     "split",
                                                                     "split_with_sizes",
                                                                     "narrow",
                                                                     "upsample_nearest2d",
                                                                     "upsample_bilinear2d",
                                                                     "add",
                                                                     "sub",
                                                                     "mul",
                                                                     "div",
                                                                     "neg",
                                                                     "relu",
                                                                     "relu6",
                                                                     "leaky_relu",
                                                                     "elu",
                                                                     "silu",
                                                                     "mish",
                                                                     "gelu",
                                                                     "sigmoid",
                                                                     "tanh",
                                                                     "hardtanh",
                                                                     "hardswish",
                                                                     "hardsigmoid",
                                                                     "clamp"});
    return all.contains(op) || op == items_op() || op == cast_op();
}

std::size_t layout_parameter(const PatternSite& site) {
    const auto& all = site.formula->parameters;
    const auto at = std::find_if(all.begin(), all.end(), [](const FormulaParameter& one) {
        return one.name == "layout" && one.fixed && one.fixed->isInt();
    });
    return at == all.end() ? Formula::npos : static_cast<std::size_t>(at - all.begin());
}

}  // namespace twinkle::runtime
