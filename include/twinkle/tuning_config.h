#pragma once
// Configurations as data: a struct of plain fields that names them, as JSON and back. Needs no
// LibTorch.
//
//     struct NormCfg {
//         std::int64_t threads = 256;
//         bool vectorized = true;
//         template <class Self, class Visit>
//         static void fields(Self& self, Visit&& visit) {
//             visit("threads", self.threads);
//             visit("vectorized", self.vectorized);
//         }
//     };

#include "twinkle/api.h"

#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace twinkle {

using CfgValue = std::variant<bool, std::int64_t, double, std::string>;
// Any configuration, by the names of its fields; itself one, where they are known at run time only.
using CfgFields = std::map<std::string, CfgValue>;

template <class T>
concept Configuration =
    std::same_as<T, CfgFields> || requires(T cfg) { T::fields(cfg, [](const char*, auto&) {}); };

// JSON in one form: keys sorted, no spaces, numbers as they read back. Throws Error(malformed) for
// what is no JSON.
TWINKLE_API std::string stable_json(std::string_view json);

// Writes that form. Throws Error(malformed) for numbers that are not finite.
TWINKLE_API std::string to_json(const CfgFields& fields);
// Throws Error(malformed) for all but a table of plain values.
TWINKLE_API CfgFields fields_from_json(std::string_view json);

namespace detail {

// Throws Error(malformed).
[[noreturn]] TWINKLE_API void wrong_field(const std::string& name, const char* why);

template <class T>
CfgValue cfg_value(const T& field) {
    if constexpr (std::is_same_v<T, bool>) {
        return field;
    } else if constexpr (std::is_integral_v<T>) {
        if (!std::in_range<std::int64_t>(field)) {
            wrong_field("", "an integer is too large");
        }
        return static_cast<std::int64_t>(field);
    } else if constexpr (std::is_floating_point_v<T>) {
        return static_cast<double>(field);
    } else {
        return std::string(field);
    }
}

template <class T>
void set_field(const std::string& name, const CfgValue& value, T& field) {
    if constexpr (std::is_same_v<T, bool>) {
        const bool* given = std::get_if<bool>(&value);
        given != nullptr ? void(field = *given) : wrong_field(name, "it is no truth value");
    } else if constexpr (std::is_integral_v<T>) {
        const auto* given = std::get_if<std::int64_t>(&value);
        if (given == nullptr || !std::in_range<T>(*given)) {
            wrong_field(name, "it is no integer of its type");
        }
        field = static_cast<T>(*given);
    } else if constexpr (std::is_floating_point_v<T>) {
        if (const auto* whole = std::get_if<std::int64_t>(&value)) {
            field = static_cast<T>(*whole);
        } else if (const auto* given = std::get_if<double>(&value)) {
            field = static_cast<T>(*given);
        } else {
            wrong_field(name, "it is no number");
        }
    } else {
        const auto* given = std::get_if<std::string>(&value);
        given != nullptr ? void(field = *given) : wrong_field(name, "it is no text");
    }
}

}  // namespace detail

template <Configuration Cfg>
CfgFields fields_of(const Cfg& cfg) {
    if constexpr (std::same_as<Cfg, CfgFields>) {
        return cfg;
    } else {
        CfgFields fields;
        Cfg::fields(cfg, [&](const char* name, const auto& field) {
            fields[name] = detail::cfg_value(field);
        });
        return fields;
    }
}

// Throws Error(malformed) for a field that is missing, unknown or of another type.
template <Configuration Cfg>
Cfg cfg_from_fields(const CfgFields& fields) {
    if constexpr (std::same_as<Cfg, CfgFields>) {
        return fields;
    } else {
        Cfg cfg{};
        std::size_t known = 0;
        Cfg::fields(cfg, [&](const char* name, auto& field) {
            const auto found = fields.find(name);
            if (found == fields.end()) {
                detail::wrong_field(name, "it is missing");
            }
            detail::set_field(name, found->second, field);
            ++known;
        });
        if (known != fields.size()) {
            detail::wrong_field("", "there are fields that the configuration does not have");
        }
        return cfg;
    }
}

template <Configuration Cfg>
    requires(!std::same_as<Cfg, CfgFields>)
std::string to_json(const Cfg& cfg) {
    return to_json(fields_of(cfg));
}
template <Configuration Cfg>
std::string stable_json(const Cfg& cfg) {
    return to_json(fields_of(cfg));
}
template <Configuration Cfg>
Cfg from_json(std::string_view json) {
    return cfg_from_fields<Cfg>(fields_from_json(json));
}

// Parameters of attention-like kernels.
struct BlockParams {
    std::int64_t q_blocksize = 64;   // rows of queries a block
    std::int64_t kv_blocksize = 64;  // rows of keys and values a step
    int num_warps = 4;
    int num_stages = 2;

    template <class Self, class Visit>
    static void fields(Self& self, Visit&& visit) {
        visit("q_blocksize", self.q_blocksize);
        visit("kv_blocksize", self.kv_blocksize);
        visit("num_warps", self.num_warps);
        visit("num_stages", self.num_stages);
    }
    bool operator==(const BlockParams&) const = default;
};
struct FwdParams : BlockParams {};  // of a forward pass
struct BwdParams : BlockParams {};  // of a backward pass

}  // namespace twinkle
