#include "runtime/trial/child_error.h"

#include "base/text.h"
#include "protocol/error_json.h"

namespace twinkle::runtime {

Error error_of_child(const base::Json& json) {
    constexpr ErrorCode believed[] = {ErrorCode::failed, ErrorCode::malformed, ErrorCode::not_found,
                                      ErrorCode::verification};
    const Error error = protocol::error_of(json, believed, ErrorCode::refused);
    const ErrorDetails& said = error.details();
    return {error.code(), ErrorDetails{.what = base::printable(said.what),
                                       .where = base::printable(said.where),
                                       .why = base::printable(said.why),
                                       .hint = base::printable(said.hint)}};
}

}  // namespace twinkle::runtime
