#include "runtime/exported/read_arguments.h"

#include "archive/json_reader.h"
#include "runtime/exported/schema.h"

#include "base/text.h"

#include <algorithm>
#include <functional>

namespace twinkle::runtime::exported {

using namespace archive;
using base::Json;
using Kind = Argument::Kind;

namespace {

constexpr std::size_t deepest_call = 200;  // with other names of one module

Argument of_kind(Kind kind) {
    Argument made;
    made.kind = kind;
    return made;
}

Argument with_text(Kind kind, std::string text) {
    Argument made = of_kind(kind);
    made.text = std::move(text);
    return made;
}

Argument with_integer(Kind kind, std::int64_t value) {
    Argument made = of_kind(kind);
    made.integer = value;
    return made;
}

Argument read_integer(const Json& value) {
    return with_integer(Kind::integer, integer_of(value));
}

Argument read_number(const Json& value) {
    Argument made = of_kind(Kind::number);
    made.number = number_of(value);
    return made;
}

Argument read_boolean(const Json& value) {
    return with_integer(Kind::boolean, boolean_of(value) ? 1 : 0);
}

Argument read_string(const Json& value) {
    return with_text(Kind::string, text_of(value));
}

Argument read_tensor(const Json& value) {
    return with_text(Kind::tensor, text_at(value, "name"));
}

// A value of the graph by its name, or a literal.
Argument read_symbolic(const Json& value, Kind kind) {
    const Choice choice = choice_of(value);
    return choice.name == "as_name" ? with_text(kind, text_of(choice.value)) : read_argument(value);
}

std::string read_device(const Json& value) {
    const Json* index = optional_member(value, "index");
    return text_at(value, "type") +
           (index == nullptr ? "" : ":" + std::to_string(integer_of(*index)));
}

template <typename Number>
Argument read_enumerator(const Json& value, Kind kind,
                         std::optional<Number> (*known)(std::int64_t)) {
    const auto number = known(integer_of(value));
    return number
               ? with_integer(kind, static_cast<std::int64_t>(*number))
               : with_text(Kind::unknown, "a dtype, layout or memory format that LibTorch has not");
}

Argument read_list(const Json& value, const std::function<Argument(const Json&)>& item) {
    Argument made = of_kind(Kind::list);
    for (const Json& one : list_of(value)) {
        made.items.push_back(item(one));
    }
    return made;
}

Argument read_complex(const Json& value) {
    Argument made = of_kind(Kind::complex);
    made.number = number_of(member(value, "real"));
    made.imaginary = number_of(member(value, "imag"));
    return made;
}

Argument read_object(const Json& value) {
    return with_text(Kind::object, text_at(value, "name"));
}

Argument read_inner_graph(const Json& value) {
    Argument made = with_text(Kind::graph, text_at(value, "name"));
    made.graph = std::make_shared<Graph>(read_graph(object_at(value, "graph")));
    return made;
}

using Read = std::function<Argument(const Json&)>;

Read list_of_read(const Read& item) {
    return [item](const Json& value) { return read_list(value, item); };
}

Read symbolic(Kind kind) {
    return [kind](const Json& value) { return read_symbolic(value, kind); };
}

const std::map<std::string, Read>& readers() {
    static const std::map<std::string, Read> known = {
        {"as_none", [](const Json&) { return of_kind(Kind::none); }},
        {"as_tensor", read_tensor},
        {"as_tensors", list_of_read(read_tensor)},
        {"as_optional_tensor", read_argument},
        {"as_optional_tensors", list_of_read(read_argument)},
        {"as_nested_tensors", list_of_read(list_of_read(read_tensor))},
        {"as_int", read_integer},
        {"as_ints", list_of_read(read_integer)},
        {"as_int_lists", list_of_read(list_of_read(read_integer))},
        {"as_float", read_number},
        {"as_floats", list_of_read(read_number)},
        {"as_float_lists", list_of_read(list_of_read(read_number))},
        {"as_bool", read_boolean},
        {"as_bools", list_of_read(read_boolean)},
        {"as_string", read_string},
        {"as_strings", list_of_read(read_string)},
        {"as_complex", read_complex},
        {"as_sym_int", symbolic(Kind::sym_int)},
        {"as_sym_ints", list_of_read(symbolic(Kind::sym_int))},
        {"as_sym_float", symbolic(Kind::sym_float)},
        {"as_sym_floats", list_of_read(symbolic(Kind::sym_float))},
        {"as_sym_bool", symbolic(Kind::sym_bool)},
        {"as_sym_bools", list_of_read(symbolic(Kind::sym_bool))},
        {"as_scalar_type",
         [](const Json& value) { return read_enumerator(value, Kind::scalar_type, scalar_type); }},
        {"as_memory_format",
         [](const Json& value) {
             return read_enumerator(value, Kind::memory_format, memory_format);
         }},
        {"as_layout",
         [](const Json& value) { return read_enumerator(value, Kind::layout, layout); }},
        {"as_device",
         [](const Json& value) { return with_text(Kind::device, read_device(value)); }},
        {"as_graph", read_inner_graph},
        {"as_custom_obj", read_object},
        {"as_operator", [](const Json& value) { return with_text(Kind::op, text_of(value)); }},
    };
    return known;
}

Extent read_extent(const Json& value) {
    const Choice choice = choice_of(value);
    if (choice.name == "as_int") {
        return {integer_of(choice.value), ""};
    }
    if (choice.name == "as_expr") {
        return {std::nullopt, text_at(choice.value, "expr_str")};
    }
    throw InvalidJson("a size is neither a number nor an expression");
}

// "key,path,class" of each call, joined by ";".
std::shared_ptr<const Frames> read_frames(const std::string& text) {
    auto frames = std::make_shared<Frames>();
    for (const std::string& part : base::split(text, ';')) {
        const auto first = part.find(',');
        const auto last = part.rfind(',');
        if (first == std::string::npos || last == first) {
            return nullptr;
        }
        Frame frame{part.substr(0, first), part.substr(first + 1, last - first - 1),
                    part.substr(last + 1)};
        if (frame.key == "_empty_nn_module_stack_from_metadata_hook") {
            return nullptr;
        }
        if (frames->size() == deepest_call ||
            std::ranges::count(frame.path, '.') >= static_cast<std::ptrdiff_t>(deepest_path)) {
            throw InvalidJson("its modules call each other more deeply than any sane ones");
        }
        if (std::max({frame.key.size(), frame.path.size(), frame.class_name.size()}) >
            longest_name) {
            throw InvalidJson("the calls of its modules have longer names than any sane ones");
        }
        frames->push_back(std::move(frame));
    }
    return frames;
}

Node read_node(const Json& value) {
    Node node;
    node.target = text_at(value, "target");
    for (const Json& input : list_at(value, "inputs")) {
        node.inputs.push_back({text_at(input, "name"), read_argument(member(input, "arg"))});
    }
    node.outputs = read_list(member(value, "outputs"), read_argument).items;
    if (const Json* name = optional_member(value, "name")) {
        node.name = text_of(*name);
    } else if (!node.outputs.empty()) {
        node.name = node.outputs.front().text;
    }
    if (const Json* metadata = optional_member(value, "metadata")) {
        if (const Json* modules = optional_member(*metadata, "nn_module_stack")) {
            node.modules = read_frames(text_of(*modules));
        }
        if (const Json* stack = optional_member(*metadata, "stack_trace")) {
            node.stack_trace = text_of(*stack);
        }
    }
    return node;
}

void read_symbols(const Json& graph, const char* key, Graph& into) {
    const Json* symbols = optional_member(graph, key);
    if (symbols == nullptr) {
        return;
    }
    for (const auto& [name, value] : symbols->items()) {
        const Choice choice = choice_of(value);
        if (choice.name == "as_expr") {
            into.symbols[name] = text_at(choice.value, "expr_str");
        }
    }
}

}  // namespace

Argument read_argument(const Json& value) {
    const Choice choice = choice_of(value);
    const auto known = readers().find(choice.name);
    return known == readers().end() ? with_text(Kind::unknown, choice.name)
                                    : known->second(choice.value);
}

TensorMeta read_tensor_meta(const Json& value) {
    TensorMeta meta;
    meta.dtype = scalar_type(integer_at(value, "dtype"));
    for (const Json& size : list_at(value, "sizes")) {
        meta.sizes.push_back(read_extent(size));
    }
    for (const Json& stride : list_at(value, "strides")) {
        meta.strides.push_back(read_extent(stride));
    }
    meta.offset = read_extent(member(value, "storage_offset"));
    meta.device = read_device(member(value, "device"));
    meta.requires_grad = boolean_at(value, "requires_grad");
    meta.strided = layout(integer_at(value, "layout")) == at::kStrided;
    return meta;
}

Graph read_graph(const Json& value) {
    Graph graph;
    graph.inputs = read_list(member(value, "inputs"), read_argument).items;
    graph.outputs = read_list(member(value, "outputs"), read_argument).items;
    for (const Json& node : list_at(value, "nodes")) {
        graph.nodes.push_back(read_node(node));
    }
    for (const auto& [name, meta] : object_at(value, "tensor_values").items()) {
        graph.tensors.emplace(name, read_tensor_meta(meta));
    }
    read_symbols(value, "sym_int_values", graph);
    return graph;
}

}  // namespace twinkle::runtime::exported
