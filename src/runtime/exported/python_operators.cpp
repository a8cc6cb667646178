#include "runtime/exported/python_operators.h"

#include <map>

namespace twinkle::runtime::exported {

std::optional<std::string> counterpart_of(const std::string& target) {
    static const std::map<std::string, std::string> counterparts = {
        {"_operator.add", "aten::add"},      {"_operator.sub", "aten::sub"},
        {"_operator.mul", "aten::mul"},      {"_operator.floordiv", "aten::floordiv"},
        {"_operator.truediv", "aten::div"},  {"_operator.mod", "aten::remainder"},
        {"_operator.pow", "aten::pow"},      {"_operator.neg", "aten::neg"},
        {"_operator.eq", "aten::eq"},        {"_operator.ne", "aten::ne"},
        {"_operator.lt", "aten::lt"},        {"_operator.le", "aten::le"},
        {"_operator.gt", "aten::gt"},        {"_operator.ge", "aten::ge"},
        {"_operator.and_", "aten::__and__"}, {"_operator.or_", "aten::__or__"},
        {"_operator.xor", "aten::__xor__"},  {"_operator.not_", "aten::__not__"},
        {"torch.sym_not", "aten::__not__"},  {"torch.sym_min", "prim::min"},
        {"torch.sym_max", "prim::max"},      {"torch.sym_float", "aten::Float"},
        {"torch.sym_int", "aten::Int"},      {"torch._sym_sqrt", "aten::sqrt"},
        {"math.floor", "aten::floor"},       {"math.ceil", "aten::ceil"},
        {"math.trunc", "aten::Int"},         {"math.sqrt", "aten::sqrt"},
    };
    const auto found = counterparts.find(target);
    return found == counterparts.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::int64_t> small_power(const Node& node) {
    constexpr std::int64_t largest = 8;
    const bool is_power = node.target == "_operator.pow" && node.inputs.size() == 2 &&
                          node.inputs[0].value.kind == Argument::Kind::sym_int &&
                          node.inputs[1].value.kind == Argument::Kind::integer;
    const std::int64_t exponent = is_power ? node.inputs[1].value.integer : 0;
    return exponent >= 1 && exponent <= largest ? std::optional(exponent) : std::nullopt;
}

}  // namespace twinkle::runtime::exported
