#pragma once
// The flat list of nodes as the calls of modules that it came from: each call will be a method.

#include "runtime/exported/program.h"

#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace twinkle::runtime::exported {

struct Call {
    std::string path;        // of the module; "" is the model
    std::string class_name;  // empty for the model if no node says it
    std::string method;      // "forward", then "forward1", …
    Call* caller = nullptr;
    // What it does, in order.
    std::vector<std::variant<Node*, std::unique_ptr<Call>>> steps;

    // Values of other calls that it takes, in the order of their first use, and its own that others
    // use.
    std::vector<Argument> inputs;
    std::vector<Argument> outputs;
};

// Where attributes are that a call can reach from its own module, without being given them.
class Attributes {
public:
    virtual ~Attributes() = default;
    // `value` is an input of the program that is no user's.
    virtual bool is_attribute(const std::string& value) const = 0;
    virtual bool reaches(const std::string& path, const std::string& value) const = 0;
};

// A call that was left and entered again, or whose module is not below its caller's, is no call:
// its nodes are the caller's. A value that is another under another name (x.to(float32) of float32)
// is used as that other outside of the call that made it, so that norms give one result; sizes are
// not passed to a call that takes a tensor of that size. The nodes stay the program's; those that
// use other values than before are changed.
std::unique_ptr<Call> call_tree(Program& program, const Attributes& attributes);

// The dimension of the tensor that the symbol of an integer is. None: no dimension is.
std::optional<std::size_t> dimension_of(const Graph& graph, const std::string& tensor,
                                        const std::string& integer);

}  // namespace twinkle::runtime::exported
