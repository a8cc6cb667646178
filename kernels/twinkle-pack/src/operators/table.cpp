// All operators in one array.
#include <cstring>
#include <stdexcept>
#include <string>

#include "operators/families.h"

namespace twinkle_pack {
namespace {

struct Table {
    Operator all[operator_count];

    Table() {
        int used = 0;
        for (const OperatorList& list :
             {unary_operators(), gated_operators(), halves_operators(), rms_norm_operators(),
              layer_norm_operators(), rotary_operators(), linear_operators(),
              linear_prepack_operators(), conv2d_operators(), conv_prepack_operators(),
              max_pool2d_operators(), attention_operators(), bits_linear_operators(),
              packing_operators()})
            for (int i = 0; i < list.count && used < operator_count; ++i)
                all[used++] = list.first[i];
        if (used != operator_count) throw std::logic_error("twinkle-pack: operator_count is wrong");
    }
};

}  // namespace

const Operator* operators() {
    static const Table table;
    return table.all;
}

const Operator& find_operator(const char* name) {
    for (int i = 0; i < operator_count; ++i)
        if (std::strcmp(operators()[i].name, name) == 0) return operators()[i];
    throw std::runtime_error(std::string("twinkle-pack: no operator ") + name);
}

}  // namespace twinkle_pack
