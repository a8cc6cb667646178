#include "runtime/layers/host_attributes.h"
#include "runtime/graph/format.h"

#include <sstream>

namespace twinkle::runtime {

std::optional<c10::IValue> attribute_of(const torch::jit::Module& module,
                                        const LostAttributes& lost, const std::string& name) {
    if (module.type()->hasAttribute(name)) {
        return module.attr(name);
    }
    if (auto constant = module.type()->findConstant(name)) {
        return constant;
    }
    const auto found = lost.values.find(name);
    return found == lost.values.end() ? std::nullopt : std::optional(found->second);
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

tl::expected<HostAttributes, std::string> supplied_attributes(
    LostAttributes lost, const std::map<std::string, AttributeValue>& from_manifest) {
    HostAttributes host{std::move(lost.values), std::move(lost.withheld), {}};
    for (const auto& [name, value] : from_manifest) {
        const auto known = host.supplied.find(name);
        if (known != host.supplied.end() && !equals(known->second, value)) {
            std::ostringstream have;
            have << known->second;
            return tl::make_unexpected(
                fmt::format("the manifest supplies {} = {}, but the model's graph has {}", name,
                            to_text(value), have.str()));
        }
        host.supplied[name] = to_ivalue(value);
    }
    return host;
}

}  // namespace twinkle::runtime
