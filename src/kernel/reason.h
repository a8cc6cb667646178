#pragma once
// What a function of a kernel uses, and why it would need Python.

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::kernel {

// Why something needs Python, by which figures are kept.
enum class ReasonKind {
    symbol,        // its library needs functions of CPython
    triton,        // it launches a Triton kernel
    package,       // it uses another Python package
    construct,     // Python that has no counterpart in TorchScript
    arguments,     // *args or **kwargs
    python_class,  // it makes objects of a Python class
    autograd,      // it applies an autograd.Function that lacks a method
    dynamic,       // eval, setattr, …
    torch_api,     // a part of torch that TorchScript does not have
    rule,          // it breaks the rules of a layer
    syntax,        // its source cannot be read
    compiling,     // LibTorch's compiler refuses it, or was not asked
};
std::string_view reason_name(ReasonKind kind);  // "symbol", "triton", …

struct Reason {
    ReasonKind kind = ReasonKind::construct;
    std::string file;  // of the package; or the library
    int line = 0;      // 0: not in a source
    std::string text;
    // Otherwise it stands where a condition decides, and the types of a model may leave it out.
    bool certain = true;

    std::string message() const;  // "file:line: text"
};

struct Usage {
    std::set<std::string> operators;          // of the kernel's own namespace: "rms_norm"
    std::set<std::string> foreign_operators;  // "other_ns::name"
    bool applies_autograd_function = false;
    std::vector<Reason> reasons;  // in the order in which they are met, each place once
};

}  // namespace twinkle::kernel
