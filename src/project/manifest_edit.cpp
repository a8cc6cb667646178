#include "project/manifest_edit.h"

#include <algorithm>

#include "base/document.h"
#include "base/text.h"
#include "base/toml.h"
#include "project/entry_places.h"
#include "project/manifest_sections.h"
#include "project/text_changes.h"
#include "project/toml_meaning.h"
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

// Changes one entry of one table of kernels.
class Editor {
public:
    Editor(std::string_view text, std::string_view origin, const Node& root, TomlPath table,
           std::string name)
        : origin_(origin),
          root_(root),
          table_(std::move(table)),
          name_(std::move(name)),
          text_(text),
          sections_(toml_layout(text)),
          places_(find_entry(sections_, table_, name_)),
          changes_(text, sections_[0].header.begin) {}

    std::string add(const Pin& pin, const std::string& path) {
        const TomlEntry* const whole = places_.whole.entry;
        Meaning wanted{{pin}, path};
        if (!path.empty()) {
            wanted.pins.clear();
        }
        if (whole != nullptr && whole->is_array && path.empty()) {
            const Meaning before = meaning(root_);
            wanted.pins = before.pins;
            if (std::find(before.pins.begin(), before.pins.end(), pin) != before.pins.end()) {
                return text_;
            }
            if (!pin.revision.empty()) {
                fail("a list of versions holds no revisions");
            }
            wanted.pins.push_back(pin);
            changes_.insert(whole->items.back().end, ", " + value_text(pin, ""));
        } else if (whole != nullptr) {
            changes_.replace(whole->value, value_text(pin, path));
        } else if (!places_.parts.empty()) {
            replace_parts(field_text(pin, path));
        } else if (places_.own_section != nullptr) {
            changes_.insert_line(places_.own_section->header.end, field_text(pin, path));
        } else {
            insert_new(value_text(pin, path));
        }
        return checked(wanted);
    }

    std::string remove(const std::optional<Pin>& pin) {
        Meaning wanted;
        if (pin) {
            wanted = meaning(root_);
            const auto found = std::find(wanted.pins.begin(), wanted.pins.end(), *pin);
            if (found == wanted.pins.end()) {
                throw Error(ErrorCode::not_found,
                            {.what = "the manifest does not ask for " + base::printable(name_) +
                                     "@" + base::printable(pin->text()),
                             .where = origin_,
                             .why = "",
                             .hint = ""});
            }
            const auto index = static_cast<std::size_t>(found - wanted.pins.begin());
            wanted.pins.erase(found);
            if (!wanted.pins.empty() && places_.whole.entry != nullptr) {
                changes_.erase_item(places_.whole.entry->items, index);
                return checked(wanted);
            }
        }
        remove_all();
        return checked(wanted);
    }

private:
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

    void insert_member(const TomlContainer& table, const std::string& member) {
        if (table.entries->empty()) {
            changes_.replace(table.inline_table->value, "{ " + member + " }");
        } else {
            changes_.insert(table.entries->back().place.end, ", " + member);
        }
    }

    // The keys between a container and the table of kernels, dotted.
    std::string prefix(const TomlPath& from) const {
        std::string result;
        for (std::size_t i = from.size(); i < table_.size(); ++i) {
            result += base::toml_key(table_[i]) + ".";
        }
        return result;
    }

    void insert_new(const std::string& value) {
        const std::string member = base::toml_key(name_) + " = " + value;
        const TomlSection* const section = places_.table_section;
        if (section != nullptr && section->entries.empty()) {
            changes_.insert_line(section->header.end, member);
        } else if (section != nullptr) {
            changes_.insert_line_behind(section->entries.back().place, member);
        } else if (places_.holder.inline_table != nullptr) {
            insert_member(places_.holder, prefix(places_.holder.path) + member);
        } else if (const EntryPlace& sibling = places_.sibling; sibling.entry != nullptr) {
            changes_.insert_line_behind(sibling.entry->place, prefix(sibling.in.path) + member);
        } else {
            std::string header = prefix({});
            header.pop_back();
            changes_.append_section(header, member);
        }
    }

    void replace_parts(const std::string& field) {
        const TomlEntry& first = *places_.parts.front().entry;
        changes_.replace({first.key_parts.back().begin, first.value.end}, field);
        for (std::size_t i = 1; i < places_.parts.size(); ++i) {
            remove_entry(places_.parts[i]);
        }
    }

    void remove_entry(const EntryPlace& place) {
        if (place.in.inline_table == nullptr) {
            changes_.erase_lines(place.entry->place);
            return;
        }
        std::vector<TomlSpan> members;
        for (const TomlEntry& member : *place.in.entries) {
            members.push_back(member.place);
        }
        changes_.erase_item(members,
                            static_cast<std::size_t>(place.entry - place.in.entries->data()));
    }

    void remove_all() {
        if (places_.whole.entry != nullptr) {
            remove_entry(places_.whole);
        }
        for (const EntryPlace& part : places_.parts) {
            remove_entry(part);
        }
        if (places_.own_section != nullptr) {
            const std::size_t header = places_.own_section->header.begin;
            changes_.erase_lines({header, header});
        }
    }

    // The new text must mean what was wanted, and nothing else may have changed.
    std::string checked(const Meaning& wanted) const {
        const std::optional<std::string> result = changes_.applied();
        if (!result) {
            fail("its parts overlap");
        }
        try {
            const Node after = base::parse_toml_document(*result, origin_);
            if (meaning(after) == wanted &&
                same_meaning(without(root_, places_.path), without(after, places_.path))) {
                return *result;
            }
        } catch (const Error& error) {
            fail("changed by position it would not be valid: " + error.details().why);
        }
        fail("the text there is too unusual to be changed by position");
    }

    const std::string origin_;
    const Node& root_;
    const TomlPath table_;
    const std::string name_;
    const std::string text_;
    const std::vector<TomlSection> sections_;
    const EntryPlaces places_;
    TextChanges changes_;
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
