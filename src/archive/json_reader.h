#pragma once
// Members of JSON objects from an archive, of the type that the schema gives them.

#include "base/json.h"

#include <cstdint>
#include <stdexcept>
#include <string>

namespace twinkle::archive {

// What is wrong, and where in the document. Does not leave the folder: it becomes an Error, with
// the hint, where the document is as it should be and what it says cannot be done.
class InvalidJson : public std::runtime_error {
public:
    explicit InvalidJson(const std::string& what, std::string hint = "")
        : std::runtime_error(what), hint_(std::move(hint)) {}
    const std::string& hint() const { return hint_; }

private:
    std::string hint_;
};

const base::Json& member(const base::Json& object, const char* key);
// None: it is missing or null.
const base::Json* optional_member(const base::Json& object, const char* key);
const base::Json& object_at(const base::Json& object, const char* key);
const base::Json& list_at(const base::Json& object, const char* key);
std::string text_at(const base::Json& object, const char* key);
std::int64_t integer_at(const base::Json& object, const char* key);
bool boolean_at(const base::Json& object, const char* key);

std::string text_of(const base::Json& value);
std::int64_t integer_of(const base::Json& value);
// Accepts also "Infinity", "-Infinity" and "NaN".
double number_of(const base::Json& value);
bool boolean_of(const base::Json& value);
const base::Json& list_of(const base::Json& value);
const base::Json& list_of(base::Json&& value) = delete;  // it would be gone

// The one member of a union.
struct Choice {
    std::string name;
    const base::Json& value;
};
Choice choice_of(const base::Json& value);

}  // namespace twinkle::archive
