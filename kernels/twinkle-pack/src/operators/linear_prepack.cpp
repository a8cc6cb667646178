#include "operators/linear_prepack.h"

#include <algorithm>

#include "isa/functions.h"
#include "operators/families.h"

namespace twinkle_pack {
namespace {

constexpr int64_t whole_groups = 16;  // which are laid out at a time

bool has_loops(const View& weight) {
    return is_supported(weight.scalar_type) &&
           row_functions().linear_packed[static_cast<int>(dtype_of(weight))] != nullptr;
}

int64_t group_of(const View& weight) {
    return row_functions().panel_group[static_cast<int>(dtype_of(weight))];
}

// Of a weight that is to be laid out.
struct Sizes {
    int64_t all[panel_dims];

    explicit Sizes(const View& weight) {
        const int64_t group = group_of(weight);
        const int64_t sizes[] = {weight.sizes[0] / panel_columns, weight.sizes[1] / group,
                                 panel_columns, group};
        std::copy(sizes, sizes + panel_dims, all);
        is_whole =
            weight.sizes[0] % panel_columns == 0 && weight.sizes[1] % (whole_groups * group) == 0;
    }

    View view() const {
        View view{};
        view.dims = panel_dims;
        view.sizes = all;
        return view;
    }

    bool is_whole;
};

bool serves(const Inputs& in) {
    const View& weight = in.tensors[0];
    return weight.dims == 2 && has_loops(weight) && weight.elements() > 0 &&
           weight.is_contiguous() && Sizes(weight).is_whole;
}

void plan(const char*, const Inputs& in, Plan& plan) {
    const View& weight = in.tensors[0];
    plan.order = Order::identity(panel_dims);
    plan.add(Sizes(weight).view(), dtype_of(weight));
    plan.read_in_place(0);
}

struct Work {
    LinearPiece whole;
    Linear lay;

    static void run(int64_t begin, int64_t end, void* context) {
        const Work& work = *static_cast<const Work*>(context);
        LinearPiece piece = work.whole;
        piece.begin = begin * panel_columns;
        piece.end = end * panel_columns;
        work.lay(piece);
    }
};

void compute(const Inputs& in, const Plan&, void* const* results, ParallelFor parallel) {
    const View& weight = in.tensors[0];
    Work work{};
    work.whole.depth = weight.sizes[1];
    work.whole.factors[0] = {weight.data, weight.sizes[1], nullptr};
    work.whole.result = results[0];
    work.lay = row_functions().lay_panels[static_cast<int>(dtype_of(weight))];
    const int64_t each = weight.sizes[1] * panel_columns;
    parallel(weight.sizes[0] / panel_columns,
             std::max<int64_t>(1, parallel.grain_or(rules::grain_elements) / each), Work::run,
             &work);
}

constexpr Operator prepack(const char* name, const char* schema) {
    Operator op{name, schema, "t", plan, compute, serves};
    op.may_decline = true;
    return op;
}
#define OF(name) prepack(name "_prepack", name "_prepack(Tensor weight) -> Tensor?")

}  // namespace

bool is_in_panels(const View& weight) {
    return weight.dims == panel_dims;
}

bool is_for_this_cpu(const View& weight) {
    constexpr uintptr_t line = 64;  // vectors are read whole
    return is_in_panels(weight) && has_loops(weight) && weight.elements() > 0 &&
           weight.sizes[2] == panel_columns && weight.sizes[3] == group_of(weight) &&
           weight.sizes[1] % whole_groups == 0 && weight.is_contiguous() &&
           reinterpret_cast<uintptr_t>(weight.data) % line == 0;
}

int64_t columns_of(const View& weight) {
    return is_in_panels(weight) ? weight.sizes[0] * weight.sizes[2] : weight.sizes[0];
}
int64_t depth_of(const View& weight) {
    return is_in_panels(weight) ? weight.sizes[1] * weight.sizes[3] : weight.sizes[1];
}

PlainOrder::PlainOrder(const View& panels) {
    constexpr int of_panels[] = {0, 2, 1, 3};
    for (int d = 0; d < panel_dims; ++d) {
        sizes[d] = panels.sizes[of_panels[d]];
        strides[d] = panels.strides[of_panels[d]];
    }
}

OperatorList linear_prepack_operators() {
    static constexpr Operator all[] = {
        OF("linear"),      OF("linear_silu"),     OF("linear_gelu"),     OF("linear_gelu_tanh"),
        OF("linear_relu"), OF("linear_silu_mul"), OF("linear_gelu_mul"), OF("linear_gelu_tanh_mul"),
        OF("linear2"),     OF("linear3"),
    };
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack
