// Rotary embeddings, whose gradient is the pack's own operator, turned backwards.

#include "twinkle/ops.h"

#include "runtime/tuning/ops_parts.h"

namespace twinkle::ops {

namespace {

Tensor rotated(const Tensor& x, bool interleaved) {
    if (interleaved) {
        return at::stack({-x.slice(last, 1, std::nullopt, 2), x.slice(last, 0, std::nullopt, 2)},
                         last)
            .flatten(-2);
    }
    const auto halves = x.chunk(2, last);
    return at::cat({-halves.at(1), halves.at(0)}, last);
}

Tensor plain_rotary(const Tensor& x, const Tensor& cos, const Tensor& sin,
                    const bool& interleaved) {
    const std::int64_t count = cos.size(last);
    const Tensor turned = x.narrow(last, 0, count);
    const Tensor y = turned * cos + rotated(turned, interleaved) * sin;
    return count == x.size(last) ? y
                                 : at::cat({y, x.narrow(last, count, x.size(last) - count)}, last);
}

// The pack's operator has a last argument that turns backwards.
class Rotary final : public runtime::OfPack {
public:
    using Arguments = std::tuple<Tensor, Tensor, Tensor, bool>;

    Rotary() : OfPack("apply_rotary", true) {}

    Tensor run(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved,
               const CfgFields& cfg) const {
        return runtime::is_by_pack(cfg)
                   ? op().call<Tensor>(cfg, x, cos, sin, interleaved, false).value()
                   : plain_rotary(x, cos, sin, interleaved);
    }
    Grads vjp(const Grads& grads, const Tensor& x, const Tensor& cos, const Tensor& sin,
              bool interleaved, const CfgFields& cfg) const {
        if (runtime::is_by_pack(cfg)) {
            return {
                op().call<Tensor>(cfg, grads.at(0), cos, sin, interleaved, true).value(), {}, {}};
        }
        const Grads all = runtime::gradients_of<Tensor, Tensor, Tensor, Tensor, bool>(
            plain_rotary, grads, x, cos, sin, interleaved);
        return {all.at(0), {}, {}};
    }
};

const Rotary& rotary_operation() {
    static const Rotary operation;
    return operation;
}

}  // namespace

void list_rotary(TuneTable& table) {
    list(table, rotary_operation());
}

Tensor apply_rotary(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved) {
    return executor()(rotary_operation(), x, cos, sin, interleaved);
}

}  // namespace twinkle::ops
