#include "runtime/rewrite/host_attributes.h"
#include "runtime/format.h"

#include "runtime/rewrite/lost_attributes.h"

namespace twinkle::runtime {

namespace {

AttributeMap found_in_graph(const torch::jit::Module& module) {
    const auto* forward = module.type()->findMethod("forward");
    return forward == nullptr ? AttributeMap{}
                              : lost_attributes(*torch::jit::toGraphFunction(*forward).graph());
}

}  // namespace

std::optional<c10::IValue> attribute_of(const torch::jit::Module& module, const std::string& name) {
    if (module.type()->hasAttribute(name)) {
        return module.attr(name);
    }
    if (auto constant = module.type()->findConstant(name)) {
        return constant;
    }
    const AttributeMap lost = found_in_graph(module);
    const auto found = lost.find(name);
    return found == lost.end() ? std::nullopt : std::optional(found->second);
}

c10::IValue to_ivalue(const AttributeValue& value) {
    return std::visit([](const auto& one) { return c10::IValue(one); }, value);
}

bool equals(const c10::IValue& actual, const AttributeValue& expected) {
    if (actual.isBool()) {
        const auto* wanted = std::get_if<bool>(&expected);
        return wanted != nullptr && *wanted == actual.toBool();
    }
    if (actual.isInt() || actual.isDouble()) {
        const double number = actual.toScalar().to<double>();
        if (const auto* wanted = std::get_if<std::int64_t>(&expected)) {
            return number == static_cast<double>(*wanted);
        }
        const auto* wanted = std::get_if<double>(&expected);
        return wanted != nullptr && number == *wanted;
    }
    const auto* wanted = std::get_if<std::string>(&expected);
    return actual.isString() && wanted != nullptr && actual.toStringRef() == *wanted;
}

std::string to_text(const AttributeValue& value) {
    return std::visit([](const auto& one) { return fmt::format("{}", one); }, value);
}

tl::expected<AttributeMap, std::string> supplied_attributes(
    const torch::jit::Module& module, const std::map<std::string, AttributeValue>& from_manifest) {
    AttributeMap supplied = found_in_graph(module);
    for (const auto& [name, value] : from_manifest) {
        const auto known = supplied.find(name);
        if (known != supplied.end() && !equals(known->second, value)) {
            return tl::make_unexpected(
                fmt::format("the manifest supplies {} = {}, but the model's graph has {}", name,
                            to_text(value), known->second.toScalar().to<double>()));
        }
        supplied[name] = to_ivalue(value);
    }
    return supplied;
}

}  // namespace twinkle::runtime
