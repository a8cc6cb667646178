#include "runtime/exported/schema.h"

#include <map>

namespace twinkle::runtime::exported {

namespace {

template <typename Value>
std::optional<Value> found_in(const std::map<std::int64_t, Value>& table, std::int64_t number) {
    const auto found = table.find(number);
    return found == table.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::optional<at::ScalarType> scalar_type(std::int64_t number) {
    using Type = at::ScalarType;
    static const std::map<std::int64_t, Type> types = {
        {1, Type::Byte},
        {2, Type::Char},
        {3, Type::Short},
        {4, Type::Int},
        {5, Type::Long},
        {6, Type::Half},
        {7, Type::Float},
        {8, Type::Double},
        {9, Type::ComplexHalf},
        {10, Type::ComplexFloat},
        {11, Type::ComplexDouble},
        {12, Type::Bool},
        {13, Type::BFloat16},
        {28, Type::UInt16},
        {29, Type::Float8_e4m3fn},
        {30, Type::Float8_e5m2},
        {31, Type::Float8_e4m3fnuz},
        {32, Type::Float8_e5m2fnuz},
        {34, Type::UInt32},
        {35, Type::UInt64},
    };
    return found_in(types, number);
}

std::optional<at::Layout> layout(std::int64_t number) {
    static const std::map<std::int64_t, at::Layout> layouts = {
        {1, at::kSparse},    {2, at::kSparseCsr}, {3, at::kSparseCsc},
        {4, at::kSparseBsr}, {6, at::kMkldnn},    {7, at::kStrided},
    };
    return found_in(layouts, number);
}

std::optional<at::MemoryFormat> memory_format(std::int64_t number) {
    static const std::map<std::int64_t, at::MemoryFormat> formats = {
        {1, at::MemoryFormat::Contiguous},
        {2, at::MemoryFormat::ChannelsLast},
        {3, at::MemoryFormat::ChannelsLast3d},
        {4, at::MemoryFormat::Preserve},
    };
    return found_in(formats, number);
}

}  // namespace twinkle::runtime::exported
