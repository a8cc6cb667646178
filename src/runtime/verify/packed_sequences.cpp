#include "runtime/verify/packed_sequences.h"

#include <algorithm>
#include <numeric>

namespace twinkle::runtime {

namespace {

constexpr std::int64_t most_sequences = 65536;

bool is_integer_vector(const at::Tensor& tensor) {
    return tensor.defined() && tensor.layout() == at::kStrided && tensor.dim() == 1 &&
           (tensor.scalar_type() == at::kInt || tensor.scalar_type() == at::kLong);
}

// The lengths between offsets: 0, then never less. Positions, which grow by one, are none.
std::optional<std::vector<std::int64_t>> lengths_of(const at::Tensor& tensor) {
    if (!is_integer_vector(tensor) || tensor.size(0) < 2 || tensor.size(0) > most_sequences) {
        return std::nullopt;
    }
    const at::Tensor offsets = tensor.to(at::kCPU, at::kLong).contiguous();
    const auto* begin = offsets.const_data_ptr<std::int64_t>();
    std::vector<std::int64_t> values(begin, begin + offsets.size(0));
    if (values.front() != 0 || !std::is_sorted(values.begin(), values.end())) {
        return std::nullopt;
    }
    std::vector<std::int64_t> lengths;
    for (std::size_t i = 1; i < values.size(); ++i) {
        lengths.push_back(values[i] - values[i - 1]);
    }
    const auto is_one = [](std::int64_t length) { return length == 1; };
    const bool positions = std::all_of(lengths.begin(), lengths.end(), is_one);
    return positions ? std::nullopt : std::optional(lengths);
}

// The dimension of the rows: the first, or the second of packed ids, [1, rows].
std::optional<std::int64_t> dimension_of(const at::Tensor& tensor, std::int64_t rows) {
    if (tensor.defined() && tensor.layout() == at::kStrided) {
        for (std::int64_t i = 0; i < std::min<std::int64_t>(tensor.dim(), 2); ++i) {
            if (tensor.size(i) == rows) {
                return i;
            }
        }
    }
    return std::nullopt;
}

// The rows of the chosen sequences. One that comes again begins one row later, so that what reads
// the first for all of them computes something else.
at::Tensor rows_of(const std::vector<std::int64_t>& lengths, std::int64_t count,
                   std::int64_t length) {
    const auto have = static_cast<std::int64_t>(lengths.size());
    std::vector<std::int64_t> begins(lengths.size());
    std::exclusive_scan(lengths.begin(), lengths.end(), begins.begin(), std::int64_t{0});
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < count; ++i) {
        const auto of = static_cast<std::size_t>(i % have);
        const std::int64_t cut = length > 0 ? std::min(lengths[of], length) : lengths[of];
        for (std::int64_t row = 0; row < cut; ++row) {
            rows.push_back(begins[of] + (row + i / have) % lengths[of]);
        }
    }
    return at::tensor(rows, at::kLong);
}

}  // namespace

std::optional<PackedSequences> PackedSequences::find(const Inputs& inputs) {
    const std::vector<at::Tensor> tensors = tensors_of(inputs);
    PackedSequences found;
    for (const at::Tensor& tensor : tensors) {
        const auto lengths = lengths_of(tensor);
        const std::int64_t rows =
            lengths ? std::accumulate(lengths->begin(), lengths->end(), std::int64_t{0}) : 0;
        const auto has_rows = [&](const at::Tensor& other) {
            return !other.is_same(tensor) && !lengths_of(other) && dimension_of(other, rows);
        };
        if (rows > 0 && std::any_of(tensors.begin(), tensors.end(), has_rows)) {
            found.add(*lengths, rows);
        }
    }
    return found.lengths_.empty() ? std::nullopt : std::optional(found);
}

void PackedSequences::add(const Lengths& lengths, std::int64_t rows) {
    const auto count = static_cast<std::int64_t>(lengths.size());
    const auto known = lengths_.emplace(rows, lengths).first;
    consistent_ = consistent_ && known->second == lengths && (count_ == 0 || count_ == count);
    count_ = count;
}

std::int64_t PackedSequences::longest() const {
    std::int64_t longest = 0;
    for (const auto& [rows, lengths] : lengths_) {
        longest = std::max(longest, *std::max_element(lengths.begin(), lengths.end()));
    }
    return longest;
}

Inputs PackedSequences::resized(const Inputs& inputs, std::int64_t count, std::int64_t length,
                                bool rows_alone) const {
    return mapped(inputs, [&](const at::Tensor& tensor) {
        return resized(tensor, count > 0 ? count : count_, length, rows_alone);
    });
}

at::Tensor PackedSequences::resized(const at::Tensor& tensor, std::int64_t count,
                                    std::int64_t length, bool rows_alone) const {
    for (const auto& [rows, lengths] : lengths_) {
        if (lengths_of(tensor) == lengths) {
            std::vector<std::int64_t> offsets{0};
            for (std::int64_t i = 0; i < count; ++i) {
                const std::int64_t own = lengths[static_cast<std::size_t>(i % count_)];
                offsets.push_back(offsets.back() + (length > 0 ? std::min(own, length) : own));
            }
            return at::tensor(offsets, at::kLong).to(tensor.options());
        }
    }
    for (const auto& [rows, lengths] : lengths_) {
        if (const auto dimension = dimension_of(tensor, rows)) {
            return tensor.index_select(*dimension,
                                       rows_of(lengths, count, length).to(tensor.device()));
        }
    }
    if (!rows_alone && tensor.defined() && tensor.dim() > 0 && tensor.size(0) == count_) {
        return tensor.index_select(
            0, at::arange(count, at::kLong).remainder(count_).to(tensor.device()));
    }
    return tensor;
}

}  // namespace twinkle::runtime
