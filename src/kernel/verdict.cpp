#include "kernel/verdict.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace twinkle::kernel {
namespace {

// src/runtime/python_stub has these.
constexpr std::array<std::string_view, 1> stub{"PyModule_Create2"};
constexpr std::size_t most_packages_named = 3;

bool uses_pybind11(const binary::Library& library) {
    return std::any_of(library.symbols.symbols.begin(), library.symbols.symbols.end(),
                       [](const binary::Symbol& symbol) {
                           return symbol.name.find("pybind11") != std::string_view::npos;
                       });
}

}  // namespace

std::string_view usability_name(Usability usability) {
    switch (usability) {
        case Usability::without_python: return "without-python";
        case Usability::with_stub: return "with-stub";
        case Usability::not_compiled: return "not-compiled";
        case Usability::needs_python: return "needs-python";
    }
    return "";
}

std::span<const std::string_view> stub_symbols() {
    return stub;
}

void add_python_needs(PythonNeeds& needs, const std::string& path, const binary::Library& library) {
    std::vector<std::string> missing;
    for (const binary::Symbol& symbol : library.symbols.symbols) {
        if (symbol.defined || symbol.weak || !binary::is_python_symbol(symbol.name)) {
            continue;
        }
        if (std::find(stub.begin(), stub.end(), symbol.name) != stub.end()) {
            needs.stub = true;
        } else {
            missing.emplace_back(symbol.name);
        }
    }
    if (missing.empty()) {
        return;
    }
    std::sort(missing.begin(), missing.end());
    const std::size_t count = missing.size();
    missing.resize(std::min(count, most_packages_named));
    std::string text = "its library calls CPython: " + base::join(missing, ", ");
    if (count > most_packages_named) {
        text += " and " + std::to_string(count - most_packages_named) + " more";
    }
    if (uses_pybind11(library)) {
        text += " (pybind11)";
    }
    needs.reasons.push_back({ReasonKind::symbol, path, 0, std::move(text), true});
}

Verdict judge(const Usage& usage, const PythonNeeds& needs) {
    Verdict verdict;
    verdict.reasons = needs.reasons;
    verdict.reasons.insert(verdict.reasons.end(), usage.reasons.begin(), usage.reasons.end());
    std::stable_partition(verdict.reasons.begin(), verdict.reasons.end(),
                          [](const Reason& reason) { return reason.certain; });
    const bool certain = !verdict.reasons.empty() && verdict.reasons.front().certain;
    verdict.usable = certain      ? Usability::needs_python
                     : needs.stub ? Usability::with_stub
                                  : Usability::without_python;
    return verdict;
}

Verdict judge(const LayerSource& layer, const PythonNeeds& needs) {
    Verdict verdict = judge(layer.usage, needs);
    std::vector<Reason> broken;
    for (const Problem& problem : layer.problems) {
        broken.push_back({ReasonKind::rule, problem.file, problem.line, problem.text, true});
    }
    if (!broken.empty()) {
        verdict.usable = Usability::needs_python;
        verdict.reasons.insert(verdict.reasons.begin(), broken.begin(), broken.end());
    }
    return verdict;
}

void note_compiled(Verdict& verdict, std::string types) {
    verdict.types = std::move(types);
}

void note_refused(Verdict& verdict, std::string why) {
    note_not_compiled(verdict, std::move(why));
    if (verdict.usable == Usability::not_compiled) {
        verdict.usable = Usability::needs_python;
    }
}

void note_not_compiled(Verdict& verdict, std::string why) {
    if (verdict.usable == Usability::needs_python) {
        return;
    }
    verdict.usable = Usability::not_compiled;
    verdict.reasons.insert(verdict.reasons.begin(),
                           {ReasonKind::compiling, "", 0, std::move(why), true});
}

std::string verdict_text(const Verdict& verdict) {
    switch (verdict.usable) {
        case Usability::without_python: return "usable without Python";
        case Usability::with_stub: return "usable without Python, with the stub";
        case Usability::not_compiled: return "not compiled: " + verdict.reasons.front().message();
        case Usability::needs_python: return "needs Python: " + verdict.reasons.front().message();
    }
    return "";
}

}  // namespace twinkle::kernel
