// Reading a mapping file: everything in it decides what is loaded and run, so nothing is taken on
// trust.

#include <algorithm>
#include <set>

#include "base/document.h"
#include "base/file.h"
#include "base/hex.h"
#include "kernel/precision.h"
#include "project/attribute_table.h"
#include "project/modes.h"
#include "project/pin.h"
#include "target/backend.h"
#include "twinkle/mapping.h"

namespace fs = std::filesystem;

namespace twinkle {
namespace {

using base::Node;
using base::TableReader;

// Relative, POSIX, and staying below the folder it is relative to.
bool is_inner_path(std::string_view path) {
    if (path.empty() || path.find_first_of(std::string_view("\\\0", 2)) != std::string_view::npos) {
        return false;
    }
    while (true) {
        const std::string_view part = path.substr(0, path.find('/'));
        if (part.empty() || part == "." || part == "..") {
            return false;
        }
        if (part.size() == path.size()) {
            return true;
        }
        path.remove_prefix(part.size() + 1);
    }
}

bool is_identifier(std::string_view text) {
    return !text.empty() &&
           text.find_first_not_of(project::word_characters) == std::string_view::npos;
}

class MappingReader {
public:
    MappingReader(std::string_view origin, const fs::path& folder)
        : origin_(origin), folder_(folder) {}

    Mapping read(const Node& root) {
        TableReader reader(root, origin_, "the mapping");
        const Node& schema = reader.require("schema");
        if (reader.as_string(schema, "schema") != "twinkle.map/1") {
            reader.fail(schema, "its schema is not \"twinkle.map/1\"",
                        "make it again: twinkle resolve -o twinkle.map.json");
        }
        Mapping mapping;
        const Node& target = reader.as_table(reader.require("target"), "target");
        for (const base::Member& member : target.members) {
            mapping.target.emplace(member.key, reader.as_string(member.value, member.key));
        }
        mapping.kernels = list(reader, "kernels", &MappingReader::kernel);
        mapping.layers = list(reader, "layers", &MappingReader::layer);
        mapping.decisions = list(reader, "decisions", &MappingReader::decision);
        mapping.functions = list(reader, "functions", &MappingReader::function);
        if (reader.find("patterns") != nullptr) {  // earlier versions write none
            mapping.patterns = list(reader, "patterns", &MappingReader::pattern);
        }
        reader.finish();
        return mapping;
    }

private:
    const std::vector<Node>& items(TableReader& reader, std::string_view key) {
        return reader.as_array(reader.require(key), key).items;
    }

    template <typename Item>
    std::vector<Item> list(TableReader& reader, std::string_view key,
                           Item (MappingReader::*read)(const Node&)) {
        std::vector<Item> list;
        for (const Node& item : items(reader, key)) {
            list.push_back((this->*read)(item));
        }
        return list;
    }

    static bool flag(TableReader& reader, std::string_view key) {
        reader.require(key);
        return *reader.boolean(key);
    }

    fs::path path(TableReader& reader) {
        const Node& value = reader.require("path");
        const std::string text = reader.as_string(value, "path");
        if (text.starts_with('/') && text.find('\0') == std::string::npos) {
            return fs::path(text).lexically_normal();
        }
        if (!is_inner_path(text)) {
            reader.fail(value, "the path leaves the folder of the mapping");
        }
        return (folder_ / text).lexically_normal();
    }

    MappedFile file(const Node& item) {
        TableReader reader(item, origin_, "a file of a kernel");
        MappedFile file;
        file.path = reader.required_string("path");
        if (!is_inner_path(file.path)) {
            reader.fail(item, "the path leaves the folder of the kernel");
        }
        reader.require("size");
        file.size = static_cast<std::uint64_t>(*reader.integer("size", 0, INT64_MAX));
        file.sha256 = reader.required_string("sha256");
        if (!base::is_hex(file.sha256, 64)) {
            reader.fail(item, "\"sha256\" is not 64 lower-case hexadecimal digits");
        }
        reader.finish();
        return file;
    }

    MappedKernel kernel(const Node& item) {
        TableReader reader(item, origin_, "a kernel");
        MappedKernel kernel;
        kernel.name = reader.required_string("name");
        kernel.repo_id = reader.string("repo_id").value_or("");
        kernel.commit = reader.string("commit").value_or("");
        kernel.variant = reader.required_string("variant");
        kernel.device = device(reader);
        kernel.path = path(reader);
        kernel.op_namespace = reader.required_string("op_namespace");
        if (!kernel.op_namespace.empty() && !is_identifier(kernel.op_namespace)) {
            reader.fail(item, "\"op_namespace\" is not an identifier");
        }
        kernel.archs = reader.strings("archs");
        for (const Node& op : items(reader, "operators")) {
            TableReader fields(op, origin_, "an operator");
            kernel.operators.push_back(
                {fields.required_string("name"), fields.required_string("schema")});
            fields.finish();
        }
        for (const Node& entry : items(reader, "files")) {
            kernel.files.push_back(file(entry));
            const auto& files = kernel.files;
            if (files.size() > 1 && !(files[files.size() - 2].path < files.back().path)) {
                reader.fail(entry, "the files are not sorted by path, or one is there twice");
            }
        }
        reader.finish();
        if (!kernels_.emplace(kernel.name, kernel.device).second) {
            reader.fail(item, "\"" + kernel.name + "\" is there twice for " + kernel.device);
        }
        return kernel;
    }

    std::string device(TableReader& reader) {
        const std::string text = reader.required_string("device");
        const auto device = text == "any" ? text : target::parse_device(text);
        if (!device) {
            reader.fail(reader.require("device"), "no such device",
                        "devices: any, " + target::device_names());
        }
        return *device;
    }

    LayerCandidate candidate(const Node& item) {
        TableReader reader(item, origin_, "a candidate");
        LayerCandidate candidate;
        candidate.kernel = reader.required_string("kernel");
        candidate.layer = reader.required_string("layer");
        candidate.device = device(reader);
        if (const Node* range = reader.find("capability")) {
            const auto& ends = reader.as_array(*range, "capability").items;
            const bool valid = ends.size() == 2 && ends[0].kind == Node::Kind::integer &&
                               ends[1].kind == Node::Kind::integer && ends[0].integer >= 0 &&
                               ends[0].integer <= ends[1].integer && ends[1].integer < 100000;
            if (!valid) {
                reader.fail(*range, "\"capability\" is not [min, max]");
            }
            candidate.capability = {static_cast<int>(ends[0].integer),
                                    static_cast<int>(ends[1].integer)};
        }
        mode_and_flags(reader, candidate);
        candidate.precision = reader.string("precision").value_or("");
        if (!candidate.precision.empty() && !kernel::is_precision(candidate.precision)) {
            reader.fail(item, "its \"precision\" is no name of a precision");
        }
        reader.finish();
        require_kernel(reader, item, candidate);
        return candidate;
    }

    template <typename Candidate>
    static void mode_and_flags(TableReader& reader, Candidate& candidate) {
        const Node& mode = reader.require("mode");
        candidate.mode = reader.as_string(mode, "mode");
        if (project::parse_layer_mode(candidate.mode) != candidate.mode) {
            reader.fail(mode, "no such mode", "modes: " + std::string(project::layer_mode_names));
        }
        candidate.has_backward = flag(reader, "has_backward");
        candidate.can_torch_compile = flag(reader, "can_torch_compile");
    }

    template <typename Candidate>
    void require_kernel(const TableReader& reader, const Node& item, const Candidate& candidate) {
        if (!kernels_.contains({candidate.kernel, candidate.device}) &&
            !kernels_.contains({candidate.kernel, "any"})) {
            reader.fail(item, "it names the kernel \"" + candidate.kernel + "\" for " +
                                  candidate.device + ", which is not in the mapping");
        }
    }

    FunctionCandidate function_candidate(const Node& item) {
        TableReader reader(item, origin_, "a candidate");
        FunctionCandidate candidate;
        candidate.kernel = reader.string("kernel").value_or("");
        candidate.function = reader.string("function").value_or("");
        candidate.source = reader.string("source").value_or("");
        candidate.file = reader.string("file").value_or("");
        candidate.op = reader.string("operator").value_or("");
        candidate.device = device(reader);
        mode_and_flags(reader, candidate);
        reader.finish();
        const bool of_kernel = !candidate.kernel.empty() && candidate.op.empty();
        const bool named = candidate.op.empty() == !candidate.function.empty();
        if (!named || (!of_kernel && candidate.op.empty() == candidate.source.empty()) ||
            (of_kernel && !candidate.source.empty())) {
            reader.fail(item,
                        "it is not one of a kernel's function, a function of a source, and an "
                        "operator");
        }
        if (const auto colons = candidate.op.find("::");
            !candidate.op.empty() &&
            (colons == std::string::npos || !is_identifier(candidate.op.substr(0, colons)) ||
             !is_identifier(candidate.op.substr(colons + 2)))) {
            reader.fail(item, "\"operator\" is not namespace::name");
        }
        if (!candidate.kernel.empty()) {
            require_kernel(reader, item, candidate);
        }
        return candidate;
    }

    MappedFunction function(const Node& item) {
        TableReader reader(item, origin_, "a function");
        MappedFunction function;
        function.target_module = reader.required_string("target_module");
        function.func_name = reader.required_string("func_name");
        function.candidates = list(reader, "candidates", &MappingReader::function_candidate);
        reader.finish();
        return function;
    }

    MappedLayer layer(const Node& item) {
        TableReader reader(item, origin_, "a layer");
        MappedLayer layer;
        layer.kernel_name = reader.required_string("kernel_name");
        layer.classes = reader.strings("classes");
        layer.modules = reader.strings("modules");
        layer.when = project::read_attributes(reader, "when");
        layer.when_submodule = project::read_string_lists(reader, "when_submodule");
        layer.attributes = project::read_attributes(reader, "attributes");
        layer.candidates = list(reader, "candidates", &MappingReader::candidate);
        layer.preset = reader.boolean("preset").value_or(false);
        reader.finish();
        return layer;
    }

    MappedPattern pattern(const Node& item) {
        TableReader reader(item, origin_, "a pattern");
        MappedPattern pattern;
        pattern.name = reader.required_string("name");
        if (!is_identifier(pattern.name) || pattern.name.starts_with('_') ||
            (pattern.name.front() >= '0' && pattern.name.front() <= '9')) {
            reader.fail(item,
                        "the name of a pattern is not an identifier that begins with a letter");
        }
        pattern.source = reader.required_string("source");
        pattern.file = reader.required_string("file");
        pattern.formulas = reader.strings("formulas");
        for (const std::string& formula : pattern.formulas) {
            if (!is_identifier(formula)) {
                reader.fail(item, "the name of a formula is not an identifier");
            }
        }
        pattern.candidates = list(reader, "candidates", &MappingReader::function_candidate);
        pattern.preset = reader.boolean("preset").value_or(false);
        reader.finish();
        return pattern;
    }

    Decision decision(const Node& item) {
        TableReader reader(item, origin_, "a decision");
        Decision decision;
        decision.what = reader.required_string("what");
        decision.chosen = reader.string("chosen");
        decision.because = reader.required_string("because");
        for (const Node& entry : items(reader, "rejected")) {
            TableReader fields(entry, origin_, "a rejection");
            decision.rejected.push_back(
                {fields.required_string("name"), fields.required_string("because")});
            fields.finish();
        }
        reader.finish();
        return decision;
    }

    std::string origin_;
    fs::path folder_;
    std::set<std::pair<std::string, std::string>> kernels_;  // name and device
};

}  // namespace

Mapping Mapping::load(const fs::path& file) {
    const std::string text = base::read_file(file, "mapping");
    return parse(text, fs::absolute(file).parent_path(), base::display_path(file));
}

Mapping Mapping::parse(std::string_view json, const fs::path& folder, std::string_view origin) {
    const Node root = base::parse_json_document(json, origin);
    return MappingReader(origin, fs::absolute(folder)).read(root);
}

}  // namespace twinkle
