#include "runtime/model/program_function.h"

#include "base/text.h"
#include "runtime/model/marker.h"
#include "twinkle/error.h"

#include <torch/custom_class.h>

#include <random>

namespace twinkle::runtime {

namespace {

// "twinkle.function/1 process=0123456789abcdef name=my_pkg.math_ops.add"
constexpr std::string_view function_prefix = "twinkle.function/1 process=";
constexpr std::size_t token_size = 16;
constexpr std::string_view name_field = " name=";

std::string text_of(const std::string& function) {
    return std::string(function_prefix) + process_token() + std::string(name_field) + function;
}

struct Parts {
    std::string_view token;
    std::string_view function;
};

Parts parts_of(std::string_view text) {
    text.remove_prefix(std::min(function_prefix.size(), text.size()));
    const auto name = text.find(name_field);
    if (name == std::string_view::npos) {
        return {text, "?"};
    }
    return {text.substr(0, name), text.substr(name + name_field.size())};
}

struct ProgramFunction : torch::CustomClassHolder {
    explicit ProgramFunction(std::string marker) : text(std::move(marker)) {}
    std::string text;
};

std::string save(const c10::intrusive_ptr<ProgramFunction>& self) {
    TORCH_WARN("the model calls ", parts_of(self->text).function,
               ", a C++ function of this program: what is saved can be loaded by this process "
               "alone. Save the original, and kernelize it where it is loaded");
    return self->text;
}

c10::intrusive_ptr<ProgramFunction> program_function_of(const std::string& text) {
    const Parts parts = parts_of(text);
    if (parts.token != process_token()) {
        refuse_program_function(std::string(parts.function), "");
    }
    return c10::make_intrusive<ProgramFunction>(text);
}

const auto function_class_registration =
    torch::class_<ProgramFunction>("twinkle", "ProgramFunction")
        .def_pickle([](const c10::intrusive_ptr<ProgramFunction>& self) { return save(self); },
                    [](const std::string& text) { return program_function_of(text); });

}  // namespace

const std::string& process_token() {
    static const auto& token = *new std::string([] {
        std::random_device random;
        std::string digits;
        while (digits.size() < token_size) {
            digits += "0123456789abcdef"[random() % 16];
        }
        return digits;
    }());
    return token;
}

void refuse_program_function(const std::string& function, const std::string& where) {
    throw Error(
        ErrorCode::refused,
        {.what = "the model calls the C++ function " + base::printable(function) +
                 " of another program",
         .where = where,
         .why = "it was kernelized and saved by a process that had registered that function; it "
                "is not in the model, and no other function takes its place",
         .hint = "register the function, and kernelize the original model in this program; or give "
                 "func_impl as an operator or a Python file, which a saved model can name"});
}

void mark_program_function(torch::jit::Module& root, const std::string& function) {
    const std::string text = text_of(function);
    mark_model(root, text, torch::make_custom_class<ProgramFunction>(text));
}

std::string foreign_program_function(std::string_view code) {
    for (auto at = code.find(function_prefix); at != std::string_view::npos;
         at = code.find(function_prefix, at + 1)) {
        const Parts parts = parts_of(code.substr(at, code.find_first_of("\"\n", at) - at));
        if (parts.token != process_token()) {
            return std::string(parts.function.substr(0, 300));
        }
    }
    return "";
}

}  // namespace twinkle::runtime
