#pragma once
// Whether twinkle can use a layer or a function of a kernel: the one place where it is decided, for
// `inspect` and for the resolver.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "binary/library.h"
#include "kernel/layers.h"
#include "kernel/reason.h"

namespace twinkle::kernel {

enum class Usability {
    without_python,
    with_stub,     // its library wants the entry point of a Python module, which nobody calls
    not_compiled,  // nothing in its source stands against it, but whether it compiles is not known
    needs_python,
};
std::string_view usability_name(Usability usability);  // "without-python", …

struct Verdict {
    Usability usable = Usability::without_python;
    // Say why it is needs_python, otherwise what may still stand against it for some types.
    std::vector<Reason> reasons;
    std::string types;  // that it was compiled for: "(x: Tensor, eps: float)"; empty: it was not
};

// What compiling it against declared operators shows, which its text alone does not. They change
// nothing of a verdict that is needs_python.
void note_compiled(Verdict& verdict, std::string types);
void note_refused(Verdict& verdict, std::string why);
void note_not_compiled(Verdict& verdict, std::string why);

// What the libraries of a build need of CPython.
struct PythonNeeds {
    bool stub = false;            // what the stub beside libtwinkle provides
    std::vector<Reason> reasons;  // symbols beyond that, one per library
};

// `path` is the library's name for messages.
void add_python_needs(PythonNeeds& needs, const std::string& path, const binary::Library& library);
// "PyModule_Create2", …
std::span<const std::string_view> stub_symbols();

Verdict judge(const Usage& usage, const PythonNeeds& needs);
// Beside that, the rules of layers: one that breaks them is not used.
Verdict judge(const LayerSource& layer, const PythonNeeds& needs);

// One line: "needs Python: layers.py:12: Try has no counterpart in TorchScript".
std::string verdict_text(const Verdict& verdict);

}  // namespace twinkle::kernel
