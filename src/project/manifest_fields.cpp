// Keys that more than one table of a manifest has.

#include "base/text.h"
#include "project/manifest_sections.h"
#include "project/modes.h"

namespace twinkle::project {
namespace {

using base::Node;
using base::TableReader;

}  // namespace

Pin read_version(TableReader& reader, const Node& value) {
    Pin pin;
    if (value.kind == Node::Kind::integer) {
        if (value.integer < 0 || value.integer > 1'000'000) {
            reader.fail(value, "a version is a number from 0 on");
        }
        pin.version = static_cast<int>(value.integer);
    } else if (value.kind == Node::Kind::string && is_specifier(value.text)) {
        pin.specifier = value.text;
    } else {
        reader.fail(value,
                    "a version is a number (1), a release (\"0.1.0\") or a range of releases "
                    "(\">=0.1,<0.3\")");
    }
    return pin;
}

Pin read_pin(TableReader& reader) {
    const Node* version = reader.find("version");
    const Node* revision = reader.find("revision");
    if (version != nullptr && revision != nullptr) {
        reader.fail(*revision, "\"version\" and \"revision\" are both given", "keep one of them");
    }
    if (version != nullptr) {
        return read_version(reader, *version);
    }
    Pin pin;
    if (revision != nullptr) {
        pin.revision = reader.as_string(*revision, "revision");
        if (!is_revision(pin.revision)) {
            reader.fail(*revision, "\"revision\" is no name of a branch, tag or commit");
        }
    }
    return pin;
}

std::string read_device(TableReader& reader) {
    const Node* value = reader.find("device");
    if (value == nullptr) {
        return "";
    }
    const auto device = target::parse_device(reader.as_string(*value, "device"));
    if (!device) {
        reader.fail(*value, "there is no device \"" + base::printable(value->text) + "\"",
                    "devices: " + target::device_names());
    }
    return *device;
}

std::string read_mode(TableReader& reader) {
    const Node* value = reader.find("mode");
    if (value == nullptr) {
        return "fallback";
    }
    const auto mode = parse_layer_mode(reader.as_string(*value, "mode"));
    if (!mode) {
        reader.fail(*value, "there is no mode \"" + base::printable(value->text) + "\"",
                    "modes: " + std::string(layer_mode_names));
    }
    return *mode;
}

void read_repository(TableReader& reader, const DocumentPlace& place, RepositoryKeys& keys) {
    const Node* id = reader.find("repo_id");
    const Node* path = reader.find("repo_path");
    const Node* package = reader.find("package_name");
    keys.pin = read_pin(reader);
    if (id != nullptr && path != nullptr) {
        reader.fail(*path, "\"repo_id\" and \"repo_path\" are both given", "keep one of them");
    }
    if (id != nullptr) {
        keys.repo_id = reader.as_string(*id, "repo_id");
        if (!is_repository_id(keys.repo_id)) {
            reader.fail(*id, "\"repo_id\" is not org/name");
        }
    } else if (!keys.pin.empty()) {
        reader.fail(reader.table(), "\"version\" and \"revision\" belong to a \"repo_id\"");
    }
    if (path != nullptr) {
        keys.repo_path = (place.folder / reader.as_string(*path, "repo_path")).lexically_normal();
    }
    if (package != nullptr) {
        keys.package_name = reader.as_string(*package, "package_name");
        if (path == nullptr) {
            reader.fail(*package, "\"package_name\" belongs to a \"repo_path\"");
        }
        if (keys.package_name.empty() ||
            keys.package_name.find_first_not_of(word_characters) != std::string::npos) {
            reader.fail(*package, "\"package_name\" is no name of a Python package");
        }
    }
}

}  // namespace twinkle::project
