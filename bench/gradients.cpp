#include "operations.h"

namespace bench {
namespace {

// False for gradients that are another operator's, or that transformers does not train with.
bool has_own_gradient(const Operation& operation) {
    return operation.inputs != Inputs::rotary && !operation.name.starts_with("add_") &&
           operation.name != "rms_norm (Olmo)";
}

Operation gradient_of(const Operation& operation) {
    const std::string base = operation.name.substr(0, operation.name.find(' '));
    const std::string parameters = operation.inputs == Inputs::two ? "grad, gate, up" : "grad, x";
    std::string arguments = parameters;
    if (base.ends_with("_norm")) arguments += ", self.weight, self.eps";
    if (operation.name.ends_with("(Gemma)")) arguments += ", 1.";

    Operation gradient = operation;
    gradient.name = base + "_backward" + operation.name.substr(base.size());
    gradient.backward = true;
    gradient.tensors = operation.inputs == Inputs::one ? 3 : 5;
    gradient.pack = "def forward(self, " + parameters + "):\n    return pack." + base +
                    "_backward(" + arguments + ")\n";
    gradient.community.clear();
    return gradient;
}

}  // namespace

const std::vector<Operation>& gradients() {
    static const std::vector<Operation> all = [] {
        std::vector<Operation> made;
        for (const Operation& operation : operations())
            if (has_own_gradient(operation)) made.push_back(gradient_of(operation));
        return made;
    }();
    return all;
}

}  // namespace bench
