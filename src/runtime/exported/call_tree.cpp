#include "runtime/exported/call_tree.h"

#include "runtime/exported/aliases.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace twinkle::runtime::exported {

using Kind = Argument::Kind;

namespace {

void visit_values(Argument& argument, const std::function<void(Argument&)>& visit) {
    if (argument.is_value()) {
        visit(argument);
    }
    for (Argument& item : argument.items) {
        visit_values(item, visit);
    }
}

bool is_below(const std::string& path, const std::string& above) {
    return above.empty() ? !path.empty() : path.starts_with(above + ".");
}

// Calls by number: the nodes of one share it. Two modules may have calls of one key: a key alone
// says too little.
class NumberedCalls {
public:
    // The frame must outlive this.
    std::uint32_t number_of(const Frame& frame) {
        const auto [known, first] = numbers_.try_emplace(
            {frame.key, frame.path}, static_cast<std::uint32_t>(frames_.size()));
        if (first) {
            frames_.push_back(&frame);
        }
        return known->second;
    }

    const Frame& operator[](std::uint32_t number) const { return *frames_[number]; }

private:
    std::map<std::pair<std::string_view, std::string_view>, std::uint32_t> numbers_;
    std::vector<const Frame*> frames_;
};

using Place = std::vector<std::uint32_t>;  // calls inside of which a node is, outermost first

// Leaves out the model's own call.
Place reachable(const Node& node, NumberedCalls& calls) {
    Place place;
    if (node.modules == nullptr) {
        return place;
    }
    std::string above;
    for (const Frame& frame : *node.modules) {
        if (frame.path.empty() || frame.path == above) {
            continue;  // the model itself, or the same module under another name
        }
        if (!is_below(frame.path, above)) {
            break;
        }
        place.push_back(calls.number_of(frame));
        above = frame.path;
    }
    return place;
}

std::size_t common_length(const Place& one, const Place& other) {
    std::size_t same = 0;
    while (same < std::min(one.size(), other.size()) && one[same] == other[same]) {
        ++same;
    }
    return same;
}

void collect_inner(const Node& node, std::vector<const Node*>& into) {
    for (const NamedArgument& input : node.inputs) {
        if (input.value.graph) {
            for (const Node& inner : input.value.graph->nodes) {
                into.push_back(&inner);
                collect_inner(inner, into);
            }
        }
    }
}

// A node of several graphs is where all of their nodes are, if it says nothing itself.
Place place_of(const Node& node, NumberedCalls& calls) {
    std::vector<const Node*> inner;
    collect_inner(node, inner);
    Place place = reachable(node, calls);
    bool first = true;
    Place common;
    for (const Node* one : inner) {
        if (one->modules != nullptr) {
            const Place its = reachable(*one, calls);
            common.resize(first ? 0 : common_length(common, its));
            if (first) {
                common = its;
            }
            first = false;
        }
    }
    return common.size() > place.size() ? common : place;
}

// Nodes that say nothing of where they are stand in what is around them.
std::vector<Place> places_of(const std::vector<Node>& nodes, NumberedCalls& calls) {
    std::vector<Place> places;
    for (const Node& node : nodes) {
        places.push_back(place_of(node, calls));
    }
    std::vector<std::size_t> next_known(nodes.size() + 1, nodes.size());
    for (std::size_t i = nodes.size(); i-- > 0;) {
        const bool known = nodes[i].modules != nullptr || !places[i].empty();
        next_known[i] = known ? i : next_known[i + 1];
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const std::size_t next = next_known[i];
        if (next != i && i > 0 && next < nodes.size()) {
            places[i] = places[i - 1];
            places[i].resize(common_length(places[i], places[next]));
        }
    }
    return places;
}

Place beginning(const Place& place, std::size_t size) {
    return {place.begin(), place.begin() + static_cast<std::ptrdiff_t>(size)};
}

// The calls that are left and entered again.
std::set<std::uint32_t> broken_calls(const std::vector<Place>& places) {
    std::set<Place> closed;
    std::set<std::uint32_t> broken;
    const Place* before = nullptr;
    for (const Place& place : places) {
        const std::size_t same = before == nullptr ? 0 : common_length(*before, place);
        for (std::size_t size = same + 1; before != nullptr && size <= before->size(); ++size) {
            closed.insert(beginning(*before, size));
        }
        for (std::size_t size = same + 1; size <= place.size(); ++size) {
            if (closed.contains(beginning(place, size))) {
                broken.insert(place[size - 1]);
            }
        }
        before = &place;
    }
    return broken;
}

class TreeMaker {
public:
    TreeMaker(Program& program, const Attributes& attributes)
        : program_(program), attributes_(attributes) {}

    std::unique_ptr<Call> make() {
        auto root = std::make_unique<Call>();
        root->method = "forward";
        grow(*root);
        replace_aliases(*root);
        connect(*root);
        return root;
    }

private:
    void grow(Call& root) {
        sizes_of_inputs_first();
        NumberedCalls calls;
        auto places = places_of(program_.graph.nodes, calls);
        for (auto broken = broken_calls(places); !broken.empty(); broken = broken_calls(places)) {
            for (Place& place : places) {
                std::erase_if(place, [&](std::uint32_t call) { return broken.contains(call); });
            }
        }
        std::vector<Call*> open{&root};
        Place before;
        for (std::size_t i = 0; i < places.size(); ++i) {
            open.resize(common_length(before, places[i]) + 1);
            for (std::size_t depth = open.size() - 1; depth < places[i].size(); ++depth) {
                open.push_back(&enter(*open.back(), calls[places[i][depth]]));
            }
            Node& node = program_.graph.nodes[i];
            if (root.class_name.empty() && node.modules != nullptr &&
                node.modules->front().path.empty()) {
                root.class_name = node.modules->front().class_name;
            }
            open.back()->steps.emplace_back(&node);
            for (const Argument& output : node.outputs) {
                define(output, open.back());
            }
            before = places[i];
        }
    }

    // They stand anywhere and belong to no module, but must not stand between nodes of one.
    void sizes_of_inputs_first() {
        std::set<std::string> inputs;
        for (const InputSpec& input : program_.inputs) {
            inputs.insert(input.value.text);
        }
        std::stable_partition(
            program_.graph.nodes.begin(), program_.graph.nodes.end(), [&](const Node& node) {
                return node.modules == nullptr && node.target == "torch.ops.aten.sym_size.int" &&
                       !node.inputs.empty() && inputs.contains(node.inputs.front().value.text);
            });
    }

    Call& enter(Call& caller, const Frame& frame) {
        auto call = std::make_unique<Call>();
        call->path = frame.path;
        call->class_name = frame.class_name;
        call->caller = &caller;
        const std::size_t number = calls_of_[frame.path]++;
        call->method = "forward" + (number == 0 ? "" : std::to_string(number));
        Call& made = *call;
        caller.steps.emplace_back(std::move(call));
        return made;
    }

    void define(const Argument& value, Call* call) {
        if (value.is_value()) {
            home_[value.text] = call;
        }
        for (const Argument& item : value.items) {
            define(item, call);
        }
    }

    static bool is_inside(const Call* inner, const Call* outer) {
        for (const Call* one = inner; one != nullptr; one = one->caller) {
            if (one == outer) {
                return true;
            }
        }
        return false;
    }

    // Outside of the call that made it, an alias is what it is an alias of. Users come in order,
    // and a call that was left is not entered again: what is passed once is passed for all that
    // follow.
    void resolve(Argument& value, const Call* user) {
        std::vector<std::string*> passed;
        for (auto alias = aliases_.find(value.text);
             alias != aliases_.end() && !is_inside(user, home_.at(value.text));
             alias = aliases_.find(value.text)) {
            value.text = alias->second;
            passed.push_back(&alias->second);
        }
        for (std::string* one : passed) {
            *one = value.text;
        }
    }

    void replace_aliases(Call& root) {
        aliases_ = aliases_in(program_.graph);
        for_each_step(root, [&](Node& node, const Call& call) {
            for (NamedArgument& input : node.inputs) {
                visit_values(input.value, [&](Argument& value) { resolve(value, &call); });
            }
        });
        for (OutputSpec& output : program_.outputs) {
            visit_values(output.value, [&](Argument& value) { resolve(value, &root); });
        }
    }

    static void for_each_step(const Call& call,
                              const std::function<void(Node&, const Call&)>& visit) {
        for (const auto& step : call.steps) {
            if (const auto* node = std::get_if<Node*>(&step)) {
                visit(**node, call);
            } else {
                for_each_step(*std::get<std::unique_ptr<Call>>(step), visit);
            }
        }
    }

    // What a call takes is known when all calls inside of it are; what it gives, when all users
    // are.
    void connect(Call& root) {
        for_each_step(root, [&](Node& node, const Call& call) {
            for (NamedArgument& input : node.inputs) {
                visit_values(input.value,
                             [&](Argument& one) { users_[one.text].push_back(&call); });
            }
        });
        for (OutputSpec& output : program_.outputs) {
            visit_values(output.value, [&](Argument& one) { users_[one.text].push_back(&root); });
        }
        for (auto& step : root.steps) {
            if (auto* inner = std::get_if<std::unique_ptr<Call>>(&step)) {
                find_inputs(**inner);
            }
        }
        for (Node& node : program_.graph.nodes) {
            for (Argument& output : node.outputs) {
                visit_values(output, [&](Argument& value) { give(value); });
            }
        }
    }

    void find_inputs(Call& call) {
        std::set<std::string> seen;
        std::vector<Argument> wanted;
        const auto want = [&](const Argument& value) {
            const auto home = home_.find(value.text);
            const bool own = home != home_.end() && is_inside(home->second, &call);
            const bool attribute =
                attributes_.is_attribute(value.text) && attributes_.reaches(call.path, value.text);
            if (!own && !attribute && seen.insert(value.text).second) {
                wanted.push_back(value);
            }
        };
        for (auto& step : call.steps) {
            if (auto* inner = std::get_if<std::unique_ptr<Call>>(&step)) {
                find_inputs(**inner);
                for (const Argument& value : (*inner)->inputs) {
                    want(value);
                }
            } else {
                for (NamedArgument& input : std::get<Node*>(step)->inputs) {
                    visit_values(input.value, want);
                }
            }
        }
        Taken taken;
        for (const Argument& value : wanted) {
            add_sizes(value, taken);
        }
        for (const Argument& value : wanted) {
            if (value.kind != Kind::sym_int || !is_size_in(taken, value)) {
                call.inputs.push_back(value);
                taken.values.insert(value.text);
            }
        }
        taken_.emplace(&call, std::move(taken));
    }

    // What a call is given.
    struct Taken {
        std::unordered_set<std::string> values;
        std::unordered_set<std::string> sizes;  // of the tensors, as expressions
    };

    void add_sizes(const Argument& value, Taken& taken) const {
        const auto meta = program_.graph.tensors.find(value.text);
        if (value.kind == Kind::tensor && meta != program_.graph.tensors.end()) {
            for (const Extent& size : meta->second.sizes) {
                taken.sizes.insert(size.expression);
            }
        }
    }

    bool is_size_in(const Taken& taken, const Argument& integer) const {
        const auto symbol = program_.graph.symbols.find(integer.text);
        return symbol != program_.graph.symbols.end() && !symbol->second.empty() &&
               taken.sizes.contains(symbol->second);
    }

    // Whether a call uses a value of another call that it cannot find by itself.
    bool is_given(const Call* user, const Argument& value, const Call* by) const {
        if (value.kind != Kind::sym_int) {
            return true;
        }
        for (; user != nullptr && !is_inside(by, user); user = user->caller) {
            if (user->caller == nullptr || !taken_.at(user).values.contains(value.text)) {
                return false;
            }
        }
        return user == nullptr || user->caller == nullptr || !is_size_in(taken_.at(user), value);
    }

    void give(const Argument& value) {
        const auto users = users_.find(value.text);
        if (users == users_.end()) {
            return;
        }
        for (Call* call = home_.at(value.text); call->caller != nullptr; call = call->caller) {
            const bool leaves =
                std::any_of(users->second.begin(), users->second.end(), [&](const Call* user) {
                    return !is_inside(user, call) && is_given(user, value, call);
                });
            if (leaves) {
                call->outputs.push_back(value);
            }
        }
    }

    Program& program_;
    const Attributes& attributes_;
    std::map<std::string, std::size_t> calls_of_;
    std::unordered_map<std::string, Call*> home_;
    std::unordered_map<std::string, std::string> aliases_;
    std::unordered_map<std::string, std::vector<const Call*>> users_;
    std::unordered_map<const Call*, Taken> taken_;
};

}  // namespace

std::optional<std::size_t> dimension_of(const Graph& graph, const std::string& tensor,
                                        const std::string& integer) {
    const auto meta = graph.tensors.find(tensor);
    const auto symbol = graph.symbols.find(integer);
    if (meta == graph.tensors.end() || symbol == graph.symbols.end() || symbol->second.empty()) {
        return std::nullopt;
    }
    for (std::size_t i = 0; i < meta->second.sizes.size(); ++i) {
        if (meta->second.sizes[i].expression == symbol->second) {
            return i;
        }
    }
    return std::nullopt;
}

std::unique_ptr<Call> call_tree(Program& program, const Attributes& attributes) {
    return TreeMaker(program, attributes).make();
}

}  // namespace twinkle::runtime::exported
