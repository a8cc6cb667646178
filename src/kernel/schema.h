#pragma once
// Operator schemas as TORCH_LIBRARY definitions write them: recognized strictly, never guessed.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::kernel {

inline constexpr std::size_t longest_schema = 8192;

// A character of an identifier.
bool is_word(char c);

struct OperatorSchema {
    std::string op_namespace;          // empty where the text has none
    std::string name;                  // with overload: "add.out"
    std::string text;                  // without namespace: "add.out(Tensor x, …) -> Tensor"
    std::vector<std::string> mutates;  // names of arguments that it writes to: "Tensor! out"
    std::size_t least_arguments = 0, most_arguments = 0;  // of a call
};

// None: the text is not exactly one complete schema with arguments and returns.
std::optional<OperatorSchema> parse_schema(std::string_view text);

}  // namespace twinkle::kernel
