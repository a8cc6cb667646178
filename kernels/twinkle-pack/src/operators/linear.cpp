// Linear layers, alone, with an activation, as a gate, or several of one input.
#include <algorithm>
#include <string>
#include <vector>

#include "isa/functions.h"
#include "memory.h"
#include "operators/checks.h"
#include "operators/families.h"
#include "operators/linear_prepack.h"
#include "operators/row_starts.h"
#include "operators/rows_of_x.h"
#include "operators/scratch.h"

namespace twinkle_pack {
namespace {

constexpr bool is_gate(Finish finish) {
    return finish >= Finish::silu_mul;
}

const View& weight_of(const Inputs& in, int product) {
    return in.tensors[1 + 2 * product];
}
const View& bias_of(const Inputs& in, int product) {
    return in.tensors[2 + 2 * product];
}

void check_product(const char* name, const Inputs& in, int product) {
    const View &x = in.tensors[0], &weight = weight_of(in, product), &bias = bias_of(in, product);
    if ((weight.dims != 2 && !is_in_panels(weight)) || depth_of(weight) != x.last_size())
        refuse(name,
               "the weight is " + shape_text(weight) + ", which does not fit x, " + shape_text(x));
    if (bias.is_there() && (bias.dims != 1 || bias.sizes[0] != columns_of(weight)))
        refuse(name, "the bias is " + shape_text(bias) + ", which does not fit the weight, " +
                         shape_text(weight));
    for (const View* other : {&weight, &bias})
        if (other->is_there() && other->scalar_type != x.scalar_type)
            refuse(name, "x is " + dtype_name(x.scalar_type) + ", and its weight or bias is " +
                             dtype_name(other->scalar_type));
}

template <int products, bool gated>
void plan(const char* name, const Inputs& in, Plan& plan) {
    const View& x = in.tensors[0];
    const DType dtype = supported_dtype(name, "x", x);
    if (x.dims == 0) refuse(name, "x has no dimensions");
    for (int i = 0; i < products; ++i) check_product(name, in, i);
    if (gated && columns_of(weight_of(in, 0)) != columns_of(weight_of(in, 1)))
        refuse(name, "the weights have results of different sizes");
    plan.order = Order::identity(x.dims);
    for (int i = 0; i < (gated ? 1 : products); ++i)
        plan.add_with_last(x, columns_of(weight_of(in, i)), dtype);
}

Linear many_rows_of(const RowFunctions& functions, int dtype) {
    return functions.linear_tiles[dtype] ? functions.linear_tiles[dtype]
                                         : functions.linear_many[dtype];
}

// For a weight as PyTorch has it: which of the two ways the call asks for, or is the faster one
// here, or neither.
Linear way_of(const Inputs& in, int factors) {
    const View& x = in.tensors[0];
    const RowFunctions& functions = row_functions();
    const int dtype = static_cast<int>(dtype_of(x));
    const int64_t rows = row_count(x);
    switch (static_cast<Way>(in.config.way)) {
        case Way::few: return rows <= most_few_rows ? functions.linear_few[dtype] : nullptr;
        case Way::many: return many_rows_of(functions, dtype);
        case Way::libtorch: return nullptr;
        case Way::by_rule: break;
    }
    const LinearBorders& borders = functions.linear_borders[dtype];
    // A gate has twice as much to keep in the cache.
    if (rows <= borders.few / factors) return functions.linear_few[dtype];
    if (rows <= borders.many) return many_rows_of(functions, dtype);
    return nullptr;
}

// Of a call whose other weights may lie in panels: LibTorch would need those in its own order
// again.
Linear way_beside_panels(const Inputs& in, int factors) {
    const Linear way = way_of(in, factors);
    const auto dtype = static_cast<int>(dtype_of(in.tensors[0]));
    return way ? way : many_rows_of(row_functions(), dtype);
}

Linear way_of_panels(int64_t rows, int dtype) {
    const Linear by_tiles = row_functions().linear_panel_tiles[dtype];
    return by_tiles && rows >= rules::least_panel_tile_rows ? by_tiles
                                                            : row_functions().linear_packed[dtype];
}

bool is_dense_bias(const View& bias) {
    return !bias.is_there() || bias.sizes[0] <= 1 || bias.strides[0] == 1;
}

template <int products>
int count_in_panels(const Inputs& in) {
    int count = 0;
    for (int i = 0; i < products; ++i) count += is_in_panels(weight_of(in, i)) ? 1 : 0;
    return count;
}

// One way is for all rows that meet a weight in panels, whatever the call asks for.
template <int products, bool gated>
bool serves(const Inputs& in) {
    if (in.tensors[0].elements() == 0) return false;
    for (int i = 0; i < products; ++i) {
        const View& weight = weight_of(in, i);
        if (is_in_panels(weight) ? !is_for_this_cpu(weight)
                                 : weight.elements() == 0 || weight.strides[1] != 1)
            return false;
    }
    const int in_panels = count_in_panels<products>(in);
    if (in_panels == products) return true;
    if (in_panels > 0) return !gated;
    if (!way_of(in, gated ? 2 : 1)) return false;
    for (int i = 0; i < products; ++i)
        if (!is_dense_bias(bias_of(in, i))) return false;
    return true;
}

constexpr int64_t line = 64;  // of the cache, in bytes
constexpr int64_t few_scratch = few_bytes + most_few_rows * (2 * line + few_columns * 4);
constexpr int64_t many_scratch = 4 * (many_rows * (many_depth + 16) + many_depth * panel_columns +
                                      many_rows * (many_columns + 2 * panel_columns));

constexpr int64_t most_scratch = std::max({few_scratch, many_scratch, tiles_scratch});

// Columns are shared among threads in units of this many.
constexpr int64_t unit = panel_columns;

// Units are columns of some of the rows: all of them, unless threads have too few columns each.
struct Layer {
    LinearPiece piece;  // all of it
    int64_t column_units, row_parts;
    int64_t element;  // bytes
    Linear way;

    int64_t units() const { return column_units * row_parts; }

    int64_t first_row(int64_t part) const {
        constexpr int64_t granule = 32;
        return part == row_parts ? piece.row_count
                                 : piece.row_count * part / row_parts / granule * granule;
    }

    // Units [begin, end), all of one part of the rows.
    void compute(int64_t begin, int64_t end) const {
        const int64_t part = begin / column_units, first = first_row(part);
        LinearPiece some = piece;
        some.rows += first;
        some.row_count = first_row(part + 1) - first;
        some.result = static_cast<char*>(piece.result) + first * piece.result_stride * element;
        some.begin = (begin - part * column_units) * unit;
        some.end = std::min((end - part * column_units) * unit, piece.end);
        some.scratch = scratch(most_scratch);
        way(some);
    }
};

struct Work {
    std::vector<Layer> layers;

    // Units are counted through all layers.
    static void run(int64_t begin, int64_t end, void* context) {
        int64_t first = 0;
        for (const Layer& layer : static_cast<const Work*>(context)->layers) {
            const int64_t to = std::min(end, first + layer.units()) - first;
            for (int64_t from = std::max(begin, first) - first; from < to;) {
                const int64_t next = (from / layer.column_units + 1) * layer.column_units;
                layer.compute(from, std::min(next, to));
                from = next;
            }
            first += layer.units();
        }
    }
};

// Of a weight in panels, which is not copied for each of them.
int64_t row_parts(int64_t rows, int64_t column_units, int64_t threads) {
    constexpr int64_t least_rows = 64, units_of_thread = 3;
    if (threads <= 1) return 1;
    const int64_t wanted = (units_of_thread * threads + column_units - 1) / column_units;
    return std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, rows / least_rows));
}

template <int products, Finish finish>
void compute(const Inputs& in, const Plan& plan, void* const* results, ParallelFor parallel) {
    constexpr int factors = is_gate(finish) ? 2 : 1;
    const View& x = in.tensors[0];
    const RowFunctions& functions = row_functions();
    const int dtype = static_cast<int>(dtype_of(x)), in_panels = count_in_panels<products>(in);
    const Linear way = in_panels < products ? way_beside_panels(in, factors) : nullptr;
    const Linear panel_way = in_panels > 0 ? way_of_panels(row_count(x), dtype) : nullptr;
    Work work;
    RowsOfX rows(x);
    if (panel_way && panel_way == functions.linear_panel_tiles[dtype]) rows.make_even(parallel);
    if (way && way == functions.linear_tiles[dtype])
        rows.make_tiles(functions.pack_tiles[dtype], parallel);
    int64_t units = 0;
    for (int i = 0; i < products; i += factors) {
        Layer layer{};
        layer.piece.rows = rows.all().data();
        layer.piece.row_count = static_cast<int64_t>(rows.all().size());
        layer.piece.depth = x.last_size();
        layer.piece.finish = finish;
        layer.piece.tiles = rows.tiles();
        layer.piece.fetch_near = functions.panels_near;
        for (int f = 0; f < factors; ++f) {
            const View &weight = weight_of(in, i + f), &bias = bias_of(in, i + f);
            layer.piece.factors[f] = {weight.data, weight.strides[0], bias.data};
        }
        layer.piece.result = results[i / factors];
        layer.piece.end = layer.piece.result_stride = columns_of(weight_of(in, i));
        layer.way = is_in_panels(weight_of(in, i)) ? panel_way : way;
        layer.column_units = (layer.piece.end + unit - 1) / unit;
        layer.element = element_size(plan.results[0].dtype);
        layer.row_parts = layer.way == panel_way ? row_parts(layer.piece.row_count,
                                                             layer.column_units, parallel.threads)
                                                 : 1;
        units += layer.units();
        prefer_huge_pages(layer.piece.result, layer.piece.row_count * layer.piece.end *
                                                  element_size(plan.results[0].dtype));
        work.layers.push_back(layer);
    }
    const int64_t each = x.elements() * unit * factors;
    const int64_t grain = parallel.grain_or(rules::grain_products) / each;
    parallel(units, std::max<int64_t>(1, grain), Work::run, &work);
}

template <int products, Finish finish>
constexpr Operator layer(const char* name, const char* schema, const char* then) {
    constexpr bool gated = is_gate(finish);
    constexpr const char* arguments[] = {"", "ttowg", "ttotowg", "ttototowg"};
    return {name,
            schema,
            arguments[products],
            plan<products, gated>,
            compute<products, finish>,
            serves<products, gated>,
            {products, then}};
}

#define CONFIG ", *, int way=0, int grain=0)"
#define ONE(name) name, name "(Tensor x, Tensor weight, Tensor? bias" CONFIG " -> Tensor"
#define GATE(name)                                                                     \
    name, name                                                                         \
        "(Tensor x, Tensor gate_weight, Tensor? gate_bias, Tensor up_weight, Tensor? " \
        "up_bias" CONFIG " -> Tensor"

}  // namespace

OperatorList linear_operators() {
    using F = Finish;
    static constexpr Operator all[] = {
        layer<1, F::none>(ONE("linear"), nullptr),
        layer<1, F::silu>(ONE("linear_silu"), "silu"),
        layer<1, F::gelu>(ONE("linear_gelu"), "gelu"),
        layer<1, F::gelu_tanh>(ONE("linear_gelu_tanh"), "gelu_tanh"),
        layer<1, F::relu>(ONE("linear_relu"), "relu"),
        layer<2, F::silu_mul>(GATE("linear_silu_mul"), "silu_mul"),
        layer<2, F::gelu_mul>(GATE("linear_gelu_mul"), "gelu_mul"),
        layer<2, F::gelu_tanh_mul>(GATE("linear_gelu_tanh_mul"), "gelu_tanh_mul"),
        layer<2, F::none>("linear2",
                          "linear2(Tensor x, Tensor weight1, Tensor? bias1, Tensor weight2, "
                          "Tensor? bias2" CONFIG " -> (Tensor, Tensor)",
                          nullptr),
        layer<3, F::none>("linear3",
                          "linear3(Tensor x, Tensor weight1, Tensor? bias1, Tensor weight2, "
                          "Tensor? bias2, Tensor weight3, Tensor? bias3" CONFIG
                          " -> (Tensor, Tensor, "
                          "Tensor)",
                          nullptr),
    };
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack
