#pragma once
// All places of a TOML text that speak of one entry of one table, and where a new one would stand.

#include "project/toml_layout.h"

namespace twinkle::project {

// What holds entries: a section, or an inline table.
struct TomlContainer {
    TomlPath path;
    const TomlEntry* inline_table = nullptr;  // none: a section
    const std::vector<TomlEntry>* entries = nullptr;
};

struct EntryPlace {
    const TomlEntry* entry = nullptr;  // null: there is none
    TomlContainer in;
};

// Points into the layout that it was found in.
struct EntryPlaces {
    TomlPath path;                               // of the entry
    EntryPlace whole;                            // `name = value`
    std::vector<EntryPlace> parts;               // `name.version = value`, or in [table.name]
    const TomlSection* own_section = nullptr;    // [table.name]
    const TomlSection* table_section = nullptr;  // [table]
    TomlContainer holder;                        // the innermost inline table around the table
    EntryPlace sibling;                          // the last other entry of the table
};

EntryPlaces find_entry(const std::vector<TomlSection>& sections, const TomlPath& table,
                       const std::string& name);

}  // namespace twinkle::project
