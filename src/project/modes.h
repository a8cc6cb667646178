#pragma once
// The modes that a layer can be registered for.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::project {

// "inference", "training" ("train"), each with "+compile"; "compile" = "inference+compile";
// "fallback". None: no such mode.
std::optional<std::string> parse_layer_mode(std::string_view text);

// The same of a model, which has a mode: none for "fallback". And their names.
std::optional<std::string> parse_mode(std::string_view text);
std::vector<std::string> mode_names();

// Take a mode as these give it.
bool wants_training(std::string_view mode);
bool wants_compile(std::string_view mode);

// The flag of a layer or function that excludes a mode which it is bound for. `asked` is what the
// model is kernelized for; empty: for anything, as a document is read. Null: none does.
const char* excluding_flag(std::string_view bound, std::string_view asked, bool has_backward,
                           bool can_torch_compile);

inline constexpr std::string_view layer_mode_names =
    "inference, training, inference+compile, training+compile, fallback";

// Reasons name the file of a binding alone: "/a/b/twinkle.toml: [layers.X]" is "twinkle.toml: …".
std::string file_of_place(const std::string& where);

}  // namespace twinkle::project
