#include "archive/json_reader.h"

#include "base/text.h"

#include <limits>

namespace twinkle::archive {

using base::Json;

namespace {

[[noreturn]] void unlike(const Json& value, const char* wanted) {
    const std::string text = base::json_line(value);
    throw InvalidJson("there is no " + std::string(wanted) + " where it should be, but " +
                      base::printable(text.substr(0, 60)) + (text.size() > 60 ? "…" : ""));
}

}  // namespace

const Json* optional_member(const Json& object, const char* key) {
    if (!object.is_object()) {
        unlike(object, "object");
    }
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
}

const Json& member(const Json& object, const char* key) {
    const Json* found = optional_member(object, key);
    if (found == nullptr) {
        throw InvalidJson("\"" + std::string(key) + "\" is missing");
    }
    return *found;
}

const Json& list_of(const Json& value) {
    if (!value.is_array()) {
        unlike(value, "list");
    }
    return value;
}

std::string text_of(const Json& value) {
    if (!value.is_string()) {
        unlike(value, "string");
    }
    return value.get<std::string>();
}

std::int64_t integer_of(const Json& value) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() && value.get<std::uint64_t>() > most)) {
        unlike(value, "integer");
    }
    return value.get<std::int64_t>();
}

double number_of(const Json& value) {
    if (value.is_number()) {
        return value.get<double>();
    }
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    if (text == "Infinity") {
        return std::numeric_limits<double>::infinity();
    }
    if (text == "-Infinity") {
        return -std::numeric_limits<double>::infinity();
    }
    if (text == "NaN") {
        return std::numeric_limits<double>::quiet_NaN();
    }
    unlike(value, "number");
}

bool boolean_of(const Json& value) {
    if (!value.is_boolean()) {
        unlike(value, "true or false");
    }
    return value.get<bool>();
}

const Json& object_at(const Json& object, const char* key) {
    const Json& found = member(object, key);
    if (!found.is_object()) {
        unlike(found, "object");
    }
    return found;
}

const Json& list_at(const Json& object, const char* key) {
    return list_of(member(object, key));
}

std::string text_at(const Json& object, const char* key) {
    return text_of(member(object, key));
}

std::int64_t integer_at(const Json& object, const char* key) {
    return integer_of(member(object, key));
}

bool boolean_at(const Json& object, const char* key) {
    return boolean_of(member(object, key));
}

Choice choice_of(const Json& value) {
    if (!value.is_object() || value.size() != 1) {
        unlike(value, "union of one member");
    }
    return {value.begin().key(), value.begin().value()};
}

}  // namespace twinkle::archive
