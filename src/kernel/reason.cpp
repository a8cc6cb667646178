#include "kernel/reason.h"

namespace twinkle::kernel {

std::string_view reason_name(ReasonKind kind) {
    switch (kind) {
        case ReasonKind::symbol: return "symbol";
        case ReasonKind::triton: return "triton";
        case ReasonKind::package: return "package";
        case ReasonKind::construct: return "construct";
        case ReasonKind::arguments: return "arguments";
        case ReasonKind::python_class: return "class";
        case ReasonKind::autograd: return "autograd";
        case ReasonKind::dynamic: return "dynamic";
        case ReasonKind::torch_api: return "torch";
        case ReasonKind::rule: return "rule";
        case ReasonKind::syntax: return "syntax";
        case ReasonKind::compiling: return "compiling";
    }
    return "";
}

std::string Reason::message() const {
    const std::string place = line > 0 ? file + ":" + std::to_string(line) : file;
    return place.empty() ? text : place + ": " + text;
}

}  // namespace twinkle::kernel
