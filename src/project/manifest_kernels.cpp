// [kernels]: what is locked and fetched, and local kernels.

#include "base/text.h"
#include "project/manifest_sections.h"

namespace twinkle::project {
namespace {

using base::Node;
using base::TableReader;

class KernelsReader {
public:
    KernelsReader(const Node& table, const DocumentPlace& place)
        : place_(place), reader_(table, place.origin, "the table of kernels") {}

    std::vector<KernelRequest> read() {
        for (const base::Member& member : reader_.table().members) {
            where_ = base::located(place_.origin, member.at);
            key_ = member.key;
            read_value(member.value);
        }
        return std::move(requests_);
    }

private:
    void read_value(const Node& value) {
        switch (value.kind) {
            case Node::Kind::array:
                if (value.items.empty()) {
                    reader_.fail(value, "the list of versions is empty");
                }
                for (const Node& item : value.items) {
                    add_pinned(value, read_version(reader_, item));
                }
                break;
            case Node::Kind::table: read_table(value); break;
            default: add_pinned(value, read_version(reader_, value)); break;
        }
    }

    void read_table(const Node& value) {
        TableReader fields(value, place_.origin, "the kernel \"" + base::printable(key_) + "\"");
        const Node* path = fields.find("path");
        const Pin pin = read_pin(fields);
        fields.finish();
        if (path == nullptr) {
            if (pin.empty()) {
                fields.fail(value, "one of \"version\", \"revision\" and \"path\" is needed");
            }
            return add_pinned(value, pin);
        }
        if (!pin.empty()) {
            fields.fail(*path, "a local kernel has no version or revision");
        }
        const auto folder = place_.folder / fields.as_string(*path, "path");
        add(value, {key_, {}, folder.lexically_normal(), where_});
    }

    void add_pinned(const Node& value, Pin pin) {
        if (!is_repository_id(key_)) {
            reader_.fail(value, "\"" + base::printable(key_) + "\" is not org/name",
                         "a kernel in a folder is written { path = \"…\" }");
        }
        add(value, {key_, std::move(pin), {}, where_});
    }

    void add(const Node& value, KernelRequest request) {
        for (const KernelRequest& other : requests_) {
            if (other.key == request.key && other.pin == request.pin) {
                reader_.fail(value, "the same version is given twice");
            }
        }
        requests_.push_back(std::move(request));
    }

    const DocumentPlace& place_;
    TableReader reader_;
    std::string key_;
    std::string where_;
    std::vector<KernelRequest> requests_;
};

}  // namespace

std::vector<KernelRequest> read_kernels(const Node& table, const DocumentPlace& place) {
    return KernelsReader(table, place).read();
}

}  // namespace twinkle::project
