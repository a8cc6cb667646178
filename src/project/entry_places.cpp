#include "project/entry_places.h"

#include <algorithm>

namespace twinkle::project {
namespace {

bool begins_with(const TomlPath& path, const TomlPath& beginning) {
    return path.size() >= beginning.size() &&
           std::equal(beginning.begin(), beginning.end(), path.begin());
}

void visit(const TomlContainer& container, const TomlPath& table, EntryPlaces& found) {
    for (const TomlEntry& entry : *container.entries) {
        const TomlPath path = joined(container.path, entry.key);
        if (path == found.path) {
            found.whole = {&entry, container};
            continue;
        }
        if (begins_with(path, found.path)) {
            found.parts.push_back({&entry, container});
        } else if (begins_with(path, table) && path != table &&
                   begins_with(table, container.path)) {
            found.sibling = {&entry, container};
        }
        const bool on_the_way = begins_with(table, path);
        if (entry.is_inline_table && (on_the_way || begins_with(path, table))) {
            const TomlContainer inside{path, &entry, &entry.members};
            const bool inner =
                found.holder.inline_table == nullptr || path.size() > found.holder.path.size();
            if (on_the_way && inner) {
                found.holder = inside;
            }
            visit(inside, table, found);
        }
    }
}

}  // namespace

EntryPlaces find_entry(const std::vector<TomlSection>& sections, const TomlPath& table,
                       const std::string& name) {
    EntryPlaces found;
    found.path = joined(table, {name});
    for (const TomlSection& section : sections) {
        if (section.is_array) {
            continue;
        }
        if (section.path == found.path) {
            found.own_section = &section;
        }
        if (section.path == table) {
            found.table_section = &section;
        }
        visit({section.path, nullptr, &section.entries}, table, found);
    }
    return found;
}

}  // namespace twinkle::project
