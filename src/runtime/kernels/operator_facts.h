#pragma once
// What the dispatcher of LibTorch knows of an operator: of one that is loaded in this process, or,
// as a child process has said, of one that is only declared here.

#include "base/json.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::runtime {

struct OperatorFacts {
    std::string name;    // without namespace, with overload: "add.out"
    std::string schema;  // without namespace, as it can be parsed again
    bool cpu = false;    // there is a kernel for tensors there: its own, or made of other operators
    bool cuda = false;
    bool autograd = false;  // gradients go through it, or it takes care of them
};

// "ns::add.out"
std::string full_name(const c10::OperatorName& name);

// Has no namespace, and can be parsed again.
std::string declaration_of(const c10::FunctionSchema& schema);

OperatorFacts facts_of(const c10::OperatorHandle& op);

// Every operator of a namespace that is defined in this process, by name.
std::vector<OperatorFacts> operators_of(const std::string& op_namespace);

// One line of a child's, and back; none: it is not of that shape, or no schema.
base::Json to_json(const OperatorFacts& facts);
std::optional<OperatorFacts> operator_facts(const base::Json& json);

// The facts of an operator by its qualified name, from the dispatcher or, where it is declared,
// from what a child has said; none: nothing is known of it, as where it was declared for another
// machine.
std::optional<OperatorFacts> known_facts(const c10::OperatorName& name);

// Sets what is known of a declared operator (none: nothing), until the libraries of its namespace
// are loaded. Thread-safe.
void set_declared_facts(const c10::OperatorName& name, std::optional<OperatorFacts> facts);
void forget_declared_facts(const std::string& op_namespace);

}  // namespace twinkle::runtime
