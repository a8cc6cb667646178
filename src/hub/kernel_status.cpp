#include "hub/kernel_status.h"

#include "base/toml.h"
#include "hub/names.h"

namespace twinkle::hub {

Redirect read_kernel_status(std::string_view text, std::string_view origin) {
    const base::Node document = base::parse_toml_document(text, origin);
    base::TableReader reader(document, origin, "the status of the repository");
    const base::Node& kind = reader.require("kind");
    if (reader.as_string(kind, "kind") != "redirect") {
        reader.fail(kind, "\"kind\" is not \"redirect\": no other kind is known",
                    "a newer twinkle may know it");
    }
    Redirect redirect;
    redirect.repo_id = reader.required_string("destination");
    redirect.revision = reader.string("revision").value_or("main");
    check_repo_id(redirect.repo_id);
    check_revision(redirect.revision);
    return redirect;
}

}  // namespace twinkle::hub
