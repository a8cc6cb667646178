#include "project/manifest_edit.h"

#include <algorithm>

#include "base/document.h"
#include "base/text.h"
#include "base/toml.h"
#include "project/manifest_sections.h"
#include "project/toml_layout.h"
#include "twinkle/error.h"

namespace twinkle::project {
namespace {

using base::Node;

const TomlPath twinkle_kernels{"kernels"};
const TomlPath python_kernels{"tool", "kernels", "dependencies"};
const TomlPath pyproject_kernels{"tool", "twinkle", "kernels"};

// What an entry asks for, however it is spelled.
struct Meaning {
    std::vector<Pin> pins;
    std::string path;
    bool operator==(const Meaning&) const = default;
};

TomlPath joined(TomlPath path, const TomlPath& more) {
    path.insert(path.end(), more.begin(), more.end());
    return path;
}

bool begins_with(const TomlPath& path, const TomlPath& beginning) {
    return path.size() >= beginning.size() &&
           std::equal(beginning.begin(), beginning.end(), path.begin());
}

const Node* find_node(const Node& root, const TomlPath& path) {
    const Node* node = &root;
    for (const std::string& key : path) {
        node = node == nullptr ? nullptr : node->find(key);
    }
    return node;
}

std::string key_text(const std::string& name) {
    const bool bare = !name.empty() && name.find_first_not_of(
                                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                           "0123456789_-") == std::string::npos;
    return bare ? name : base::toml_string(name);
}

// "version = 1": as a key of a table.
std::string field_text(const Pin& pin, const std::string& path) {
    return !path.empty()            ? "path = " + base::toml_string(path)
           : pin.version            ? "version = " + std::to_string(*pin.version)
           : !pin.specifier.empty() ? "version = " + base::toml_string(pin.specifier)
                                    : "revision = " + base::toml_string(pin.revision);
}

std::string value_text(const Pin& pin, const std::string& path) {
    const std::string field = field_text(pin, path);
    return field.starts_with("version = ") ? field.substr(std::string_view("version = ").size())
                                           : "{ " + field + " }";
}

// Tables that hold nothing count as absent, and the order of keys does not matter.
bool is_nothing(const Node& node) {
    return node.kind == Node::Kind::table &&
           std::all_of(node.members.begin(), node.members.end(),
                       [](const base::Member& member) { return is_nothing(member.value); });
}

bool same_meaning(const Node& a, const Node& b) {
    if (a.kind == Node::Kind::table && b.kind == Node::Kind::table) {
        const auto inside = [](const Node& one, const Node& other, bool compare) {
            return std::all_of(
                one.members.begin(), one.members.end(), [&](const base::Member& member) {
                    const Node* same = other.find(member.key);
                    return same == nullptr ? is_nothing(member.value)
                                           : !compare || same_meaning(member.value, *same);
                });
        };
        return inside(a, b, true) && inside(b, a, false);
    }
    return a.kind == b.kind && a.boolean == b.boolean && a.integer == b.integer &&
           a.number == b.number && a.text == b.text &&
           std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(),
                      [](const Node& x, const Node& y) { return same_meaning(x, y); });
}

Node without(Node root, const TomlPath& path) {
    Node* node = &root;
    for (std::size_t i = 0; i < path.size(); ++i) {
        const auto found =
            std::find_if(node->members.begin(), node->members.end(),
                         [&](const base::Member& member) { return member.key == path[i]; });
        if (found == node->members.end()) {
            break;
        }
        if (i + 1 == path.size()) {
            node->members.erase(found);
            break;
        }
        node = &found->value;
    }
    return root;
}

// One entry of one table of kernels, with all the places in the text that speak of it.
class Editor {
public:
    Editor(std::string_view text, std::string_view origin, const Node& root, TomlPath table,
           std::string name)
        : text_(text),
          origin_(origin),
          root_(root),
          table_(std::move(table)),
          name_(std::move(name)),
          sections_(toml_layout(text)),
          newline_(text.find("\r\n") != std::string_view::npos ? "\r\n" : "\n") {
        find_places();
    }

    std::string add(const Pin& pin, const std::string& path) {
        Meaning wanted{{pin}, path};
        if (!path.empty()) {
            wanted.pins.clear();
        }
        if (whole_ != nullptr && whole_->is_array && path.empty()) {
            const Meaning before = meaning(root_);
            wanted.pins = before.pins;
            if (std::find(before.pins.begin(), before.pins.end(), pin) != before.pins.end()) {
                return text_;
            }
            if (!pin.revision.empty()) {
                fail("a list of versions holds no revisions");
            }
            wanted.pins.push_back(pin);
            insert(whole_->items.back().end, ", " + value_text(pin, ""));
        } else if (whole_ != nullptr) {
            replace(whole_->value, value_text(pin, path));
        } else if (!parts_.empty()) {
            replace_parts(field_text(pin, path));
        } else if (own_section_ != nullptr) {
            insert_line(own_section_->header.end, field_text(pin, path), "");
        } else {
            insert_new(value_text(pin, path));
        }
        return checked(wanted);
    }

    std::string remove(const std::optional<Pin>& pin) {
        const Meaning before = meaning(root_);
        Meaning wanted;
        if (pin) {
            const auto found = std::find(before.pins.begin(), before.pins.end(), *pin);
            if (found == before.pins.end()) {
                throw Error(ErrorCode::not_found,
                            {.what = "the manifest does not ask for " + base::printable(name_) +
                                     "@" + base::printable(pin->text()),
                             .where = origin_,
                             .why = "",
                             .hint = ""});
            }
            wanted.pins = before.pins;
            wanted.pins.erase(wanted.pins.begin() + (found - before.pins.begin()));
            if (!wanted.pins.empty() && whole_ != nullptr) {
                const auto index = static_cast<std::size_t>(found - before.pins.begin());
                remove_from_list(whole_->items, index);
                return checked(wanted);
            }
        }
        remove_all();
        return checked(wanted);
    }

private:
    struct Container {
        TomlPath path;
        const TomlEntry* inline_table = nullptr;  // none: a section
        const TomlSection* section = nullptr;
        const std::vector<TomlEntry>* entries = nullptr;
    };
    struct Part {
        const TomlEntry* entry = nullptr;
        Container in;
    };

    [[noreturn]] void fail(std::string why) const {
        throw Error(ErrorCode::malformed, {.what = "cannot edit the entry of " +
                                                   base::printable(name_) + " in the manifest",
                                           .where = origin_,
                                           .why = std::move(why),
                                           .hint = "edit it by hand, then run twinkle lock"});
    }

    Meaning meaning(const Node& root) const {
        Meaning result;
        const Node* table = find_node(root, table_);
        if (table == nullptr) {
            return result;
        }
        for (const KernelRequest& request : read_kernels(*table, {origin_, "/"})) {
            if (request.key == name_ && request.path.empty()) {
                result.pins.push_back(request.pin);
            } else if (request.key == name_) {
                result.path = table->find(name_)->find("path")->text;
            }
        }
        return result;
    }

    void find_places() {
        entry_path_ = joined(table_, {name_});
        for (const TomlSection& section : sections_) {
            if (section.is_array) {
                continue;
            }
            if (section.path == entry_path_) {
                own_section_ = &section;
            }
            if (section.path == table_) {
                table_section_ = &section;
            }
            visit({section.path, nullptr, &section, &section.entries});
        }
    }

    void visit(const Container& container) {
        for (const TomlEntry& entry : *container.entries) {
            const TomlPath path = joined(container.path, entry.key);
            if (path == entry_path_) {
                whole_ = &entry;
                whole_in_ = container;
                continue;
            }
            if (begins_with(path, entry_path_)) {
                parts_.push_back({&entry, container});
            } else if (begins_with(path, table_) && path != table_ &&
                       begins_with(table_, container.path)) {
                sibling_ = {&entry, container};
            }
            const bool on_the_way = begins_with(table_, path);
            if (entry.is_inline_table && (on_the_way || begins_with(path, table_))) {
                const Container inside{path, &entry, nullptr, &entry.members};
                if (on_the_way &&
                    (holder_.inline_table == nullptr || path.size() > holder_.path.size())) {
                    holder_ = inside;
                }
                visit(inside);
            }
        }
    }

    // ---- changes; positions refer to the original text, so they are applied from the end

    void replace(const TomlSpan& span, std::string with) {
        changes_.push_back({span.begin, span.end, std::move(with)});
    }
    void insert(std::size_t at, std::string what) { replace({at, at}, std::move(what)); }
    void erase(std::size_t begin, std::size_t end) { replace({begin, end}, ""); }

    // A line of its own at the beginning of a line, or behind a last line without an end.
    void insert_line(std::size_t at, const std::string& line, const std::string& indent) {
        const bool fresh = at == 0 || text_[at - 1] == '\n' || at == sections_[0].header.begin;
        insert(at, fresh ? indent + line + newline_ : newline_ + indent + line);
    }

    void insert_behind(const TomlEntry& entry, const std::string& line) {
        const std::size_t begin = line_begin(text_, entry.place.begin);
        std::string indent = text_.substr(begin, entry.place.begin - begin);
        if (indent.find_first_not_of(" \t") != std::string::npos) {
            indent.clear();  // a byte order mark
        }
        insert_line(next_line(text_, entry.place.end), line, indent);
    }

    void insert_member(const Container& table, const std::string& member) {
        if (table.entries->empty()) {
            replace(table.inline_table->value, "{ " + member + " }");
        } else {
            insert(table.entries->back().place.end, ", " + member);
        }
    }

    // The keys between a container and the table of kernels, dotted.
    std::string prefix(const TomlPath& from) const {
        std::string result;
        for (std::size_t i = from.size(); i < table_.size(); ++i) {
            result += key_text(table_[i]) + ".";
        }
        return result;
    }

    void insert_new(const std::string& value) {
        const std::string member = key_text(name_) + " = " + value;
        if (table_section_ != nullptr) {
            if (table_section_->entries.empty()) {
                insert_line(table_section_->header.end, member, "");
            } else {
                insert_behind(table_section_->entries.back(), member);
            }
        } else if (holder_.inline_table != nullptr) {
            insert_member(holder_, prefix(holder_.path) + member);
        } else if (sibling_.entry != nullptr) {
            insert_behind(*sibling_.entry, prefix(sibling_.in.path) + member);
        } else {
            append_section(member);
        }
    }

    void append_section(const std::string& member) {
        std::string header = prefix({});
        header.pop_back();
        const bool empty = text_.size() == sections_[0].header.begin;
        const bool ends = empty || text_.back() == '\n';
        insert(text_.size(), (ends ? "" : newline_) + (empty ? "" : newline_) + "[" + header + "]" +
                                 newline_ + member + newline_);
    }

    void replace_parts(const std::string& field) {
        const TomlEntry& first = *parts_.front().entry;
        const TomlSpan last_key = first.key_parts.back();
        replace({last_key.begin, first.value.end}, field);
        for (std::size_t i = 1; i < parts_.size(); ++i) {
            remove_entry(parts_[i]);
        }
    }

    template <typename Places>
    void remove_from_list(const Places& items, std::size_t index) {
        const TomlSpan& item = items[index];
        if (item.comma != no_place) {
            std::size_t end = item.comma + 1;
            while (end < text_.size() && text_[end] == ' ') {
                ++end;
            }
            erase(item.begin, end);
            return;
        }
        std::size_t begin = item.begin;
        if (index > 0) {
            erase(items[index - 1].comma, items[index - 1].comma + 1);
            while (begin > items[index - 1].comma + 1 && text_[begin - 1] == ' ') {
                --begin;
            }
        }
        erase(begin, item.end);
    }

    void remove_entry(const Part& part) {
        if (part.in.inline_table == nullptr) {
            const std::size_t begin = line_begin(text_, part.entry->place.begin);
            erase(std::max(begin, sections_[0].header.begin),
                  next_line(text_, part.entry->place.end));
            return;
        }
        std::vector<TomlSpan> places;
        std::size_t index = 0;
        for (const TomlEntry& member : *part.in.entries) {
            index = &member == part.entry ? places.size() : index;
            places.push_back(member.place);
        }
        remove_from_list(places, index);
    }

    void remove_all() {
        if (whole_ != nullptr) {
            remove_entry({whole_, whole_in_});
        }
        for (const Part& part : parts_) {
            remove_entry(part);
        }
        if (own_section_ != nullptr) {
            erase(line_begin(text_, own_section_->header.begin), own_section_->header.end);
        }
    }

    std::string applied() const {
        auto changes = changes_;
        std::stable_sort(changes.begin(), changes.end(),
                         [](const Change& a, const Change& b) { return a.begin > b.begin; });
        std::string result = text_;
        std::size_t limit = text_.size();
        for (const Change& change : changes) {
            if (change.end > limit) {
                fail("its parts overlap");
            }
            result.replace(change.begin, change.end - change.begin, change.with);
            limit = change.begin;
        }
        return result;
    }

    // The new text must mean what was wanted, and nothing else may have changed.
    std::string checked(const Meaning& wanted) const {
        std::string result = applied();
        try {
            const Node after = base::parse_toml_document(result, origin_);
            if (meaning(after) == wanted &&
                same_meaning(without(root_, entry_path_), without(after, entry_path_))) {
                return result;
            }
        } catch (const Error& error) {
            fail("changed by position it would not be valid: " + error.details().why);
        }
        fail("the text there is too unusual to be changed by position");
    }

    struct Change {
        std::size_t begin;
        std::size_t end;
        std::string with;
    };

    const std::string text_;
    const std::string origin_;
    const Node& root_;
    const TomlPath table_;
    const std::string name_;
    const std::vector<TomlSection> sections_;
    const std::string newline_;
    TomlPath entry_path_;
    const TomlEntry* whole_ = nullptr;  // `name = value`
    Container whole_in_;
    std::vector<Part> parts_;                     // `name.version = value`, or in [kernels.name]
    const TomlSection* own_section_ = nullptr;    // [kernels.name]
    const TomlSection* table_section_ = nullptr;  // [kernels]
    Container holder_;                            // the innermost inline table around the table
    Part sibling_;                                // the last other kernel
    std::vector<Change> changes_;
};

std::vector<TomlPath> tables_of(ManifestFormat format) {
    return format == ManifestFormat::twinkle
               ? std::vector<TomlPath>{twinkle_kernels}
               : std::vector<TomlPath>{pyproject_kernels, python_kernels};
}

std::vector<std::string> names_in(const Node& root, ManifestFormat format) {
    std::vector<std::string> names;
    for (const TomlPath& path : tables_of(format)) {
        if (const Node* table = find_node(root, path)) {
            for (const base::Member& member : table->members) {
                names.push_back(member.key);
            }
        }
    }
    return names;
}

// The table that has the name already; none.
std::optional<TomlPath> table_with(const Node& root, ManifestFormat format,
                                   const std::string& name) {
    for (const TomlPath& path : tables_of(format)) {
        if (find_node(root, joined(path, {name})) != nullptr) {
            return path;
        }
    }
    return std::nullopt;
}

}  // namespace

std::string add_kernel(std::string_view text, ManifestFormat format, std::string_view origin,
                       const KernelEntry& entry) {
    const Node root = base::parse_toml_document(text, origin);
    // The Python tool reads plain versions only.
    const bool for_python = entry.pin.version && entry.path.empty();
    const TomlPath fresh = format == ManifestFormat::twinkle ? twinkle_kernels
                           : for_python                      ? python_kernels
                                                             : pyproject_kernels;
    const TomlPath table = table_with(root, format, entry.name).value_or(fresh);
    return Editor(text, origin, root, table, entry.name).add(entry.pin, entry.path);
}

std::string remove_kernel(std::string_view text, ManifestFormat format, std::string_view origin,
                          const std::string& name, const std::optional<Pin>& pin) {
    const Node root = base::parse_toml_document(text, origin);
    const auto table = table_with(root, format, name);
    if (!table) {
        const auto names = names_in(root, format);
        throw Error(ErrorCode::not_found,
                    {.what = "the manifest does not ask for " + base::printable(name),
                     .where = std::string(origin),
                     .why = names.empty() ? "its table of kernels is empty"
                                          : "there are: " + base::join(names, ", "),
                     .hint = base::suggestion(name, names)});
    }
    return Editor(text, origin, root, *table, name).remove(pin);
}

}  // namespace twinkle::project
