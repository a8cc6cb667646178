#pragma once
// An exported program as its archive states it (schema 8): graphs, what goes in and comes out, and
// what was assumed of sizes. Data alone; expressions stay text.

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime::exported {

struct Graph;

struct Argument {
    enum class Kind {
        none,
        tensor,
        integer,
        number,
        boolean,
        string,
        complex,
        sym_int,
        sym_float,
        sym_bool,
        scalar_type,    // `integer` is c10's
        memory_format,  // `integer` is c10's
        layout,         // `integer` is c10's
        device,
        object,  // of a class of torch.classes
        op,      // `text` is its target
        graph,
        list,
        unknown,  // `text` is what the schema calls it
    };
    Kind kind = Kind::none;
    std::string text;  // a value's name; a string; a device
    std::int64_t integer = 0;
    double number = 0;
    double imaginary = 0;
    std::vector<Argument> items;
    std::shared_ptr<Graph> graph{};

    // It stands for a value of the graph: `text` is its name.
    bool is_value() const {
        return kind == Kind::tensor || kind == Kind::sym_int || kind == Kind::sym_float ||
               kind == Kind::sym_bool || kind == Kind::object;
    }
};

struct NamedArgument {
    std::string name;  // of the operator's schema; empty: it goes by position
    Argument value;
};

// A size: a number, or an expression of symbols, as text ("Symbol('s77', positive=True)").
struct Extent {
    std::optional<std::int64_t> number;
    std::string expression;
};

struct TensorMeta {
    std::optional<at::ScalarType> dtype;  // none: one that this LibTorch does not know
    std::vector<Extent> sizes;
    std::vector<Extent> strides;
    Extent offset;
    std::string device = "cpu";
    bool requires_grad = false;
    bool strided = true;
};

constexpr std::size_t deepest_path = 100;   // in names
constexpr std::size_t longest_name = 2000;  // of paths, too

// A call of a module that a node was made under.
struct Frame {
    std::string key;  // of the call
    std::string path;
    std::string class_name;
};
using Frames = std::vector<Frame>;

struct Autocast {
    std::string device;
    at::ScalarType dtype = at::ScalarType::Undefined;
};

struct Node {
    std::string target;  // "torch.ops.aten.add.Tensor"
    std::string name;
    std::vector<NamedArgument> inputs;
    std::vector<Argument> outputs;
    std::shared_ptr<const Frames> modules{};     // outermost first; null: it does not say
    std::string stack_trace;                     // of Python, outermost first
    std::shared_ptr<const Autocast> autocast{};  // the region that it stands in (flatten_regions)
    bool has_effects = false;                    // besides its results: a token kept its place
};

struct Graph {
    std::vector<Argument> inputs;
    std::vector<Argument> outputs;
    std::vector<Node> nodes;
    std::map<std::string, TensorMeta> tensors;
    std::map<std::string, std::string> symbols;  // expressions of integers, by the value's name
};

struct InputSpec {
    enum class Kind { parameter, buffer, tensor_constant, object, token, user, constant };
    Kind kind = Kind::user;
    Argument value;            // a constant: what it is
    std::string target;        // of parameters, buffers, constants and objects: their path
    std::string class_name{};  // of objects, also a user's: "__torch__.torch.classes.ns.Class"
};

struct OutputSpec {
    enum class Kind { user, buffer_mutation, parameter_mutation, input_mutation, token };
    Kind kind = Kind::user;
    Argument value;
    std::string target;  // what is changed: a path, or the name of an input
};

struct Range {
    std::optional<std::int64_t> min;
    std::optional<std::int64_t> max;
};

struct Program {
    Graph graph;
    std::vector<InputSpec> inputs;
    std::vector<OutputSpec> outputs;
    std::map<std::string, Range> ranges;  // by symbol
    std::vector<std::string> guards;      // Python, of the inputs L['x']
    std::string in_spec;
    std::string out_spec;
    std::vector<std::string> argument_names;
    std::vector<std::string> modules;  // the paths of all modules
    std::map<std::string, std::vector<std::string>> namedtuple_fields;
    std::string torch_version;
};

}  // namespace twinkle::runtime::exported
