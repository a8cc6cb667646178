#pragma once
// JSON as a stream of events with positions, for readers that report where a value is. As strict as
// parse_json, which is built on it: size, depth, duplicate keys.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"

namespace twinkle::base {

struct TextPosition {
    std::size_t line = 1;
    std::size_t column = 1;  // in characters
};

// "file:line:column"
std::string located(std::string_view origin, TextPosition position);

class JsonEvents {
public:
    virtual ~JsonEvents() = default;
    virtual void null(TextPosition at) = 0;
    virtual void boolean(bool value, TextPosition at) = 0;
    virtual void integer(std::int64_t value, TextPosition at) = 0;
    virtual void unsigned_integer(std::uint64_t value, TextPosition at) = 0;
    virtual void number(double value, TextPosition at) = 0;
    virtual void string(std::string& value, TextPosition at) = 0;
    virtual void key(std::string& value, TextPosition at) = 0;
    virtual void begin_object(TextPosition at) = 0;
    virtual void end_object() = 0;
    virtual void begin_array(TextPosition at) = 0;
    virtual void end_array() = 0;
};

// Throws Error(malformed) with file, line and column.
void read_json_events(std::string_view text, std::string_view origin, JsonLimits limits,
                      JsonEvents& events);

}  // namespace twinkle::base
