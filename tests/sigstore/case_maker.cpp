#include "case_maker.h"

#include "base/base64.h"

namespace twinkle::test {
namespace {

// Changes one byte of a base64 value; `where` says which.
Edit change_byte(const std::string& path, std::function<std::size_t(std::size_t size)> where,
                 char bit) {
    return [=](Json& bundle) {
        auto bytes = base::from_base64(place(bundle, path).get<std::string>()).value();
        char& byte = bytes.at(where(bytes.size()));
        byte = static_cast<char>(byte ^ bit);
        place(bundle, path) = base::to_base64(bytes);
    };
}

}  // namespace

Json& place(Json& bundle, const std::string& path) {
    return bundle[Json::json_pointer("/" + path)];
}

Edit set(const std::string& path, Json value) {
    return [=](Json& bundle) { place(bundle, path) = value; };
}

Edit remove(const std::string& path, const std::string& key) {
    return [=](Json& bundle) { (path.empty() ? bundle : place(bundle, path)).erase(key); };
}

Edit flip(const std::string& path) {
    return change_byte(path, [](std::size_t size) { return size / 2; }, 4);
}

Edit flip_near_end(const std::string& path) {
    return change_byte(path, [](std::size_t size) { return size - 3; }, 1);
}

SignatureCase& Cases::add(const std::string& name, std::optional<sigstore::Reason> refused,
                          const SignatureSpec& spec, const RootSpec& root) {
    auto& made = cases_.emplace_back();
    made.name = name;
    made.refused = refused;
    made.bundle = instance_.sign(signed_text, spec);
    made.root = instance_.trusted_root(root);
    if (spec.with_key) {
        made.key = instance_.managed_key().pem();
    }
    return made;
}

SignatureCase& Cases::edit(const std::string& name, std::optional<sigstore::Reason> refused,
                           const SignatureSpec& base, Edit change) {
    auto spec = base;
    spec.edit_bundle = std::move(change);
    return add(name, refused, spec);
}

}  // namespace twinkle::test
