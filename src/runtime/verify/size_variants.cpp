#include "runtime/verify/size_variants.h"
#include "runtime/graph/format.h"
#include "runtime/verify/packed_sequences.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace twinkle::runtime {

namespace {

constexpr std::int64_t largest_odd = 63;
constexpr std::int64_t short_length = 64;  // up to which another batch may be of the given length
constexpr double masked_out = -1e4;        // additive masks hide with less than this

struct Sizes {
    std::int64_t batch = 0, length = 0;  // 0: there is none
};

bool has_dimensions(const at::Tensor& tensor, std::int64_t least) {
    return tensor.defined() && tensor.layout() == at::kStrided && tensor.dim() >= least;
}

Sizes sizes_of(const Inputs& inputs) {
    const auto tensors = tensors_of(inputs);
    for (const at::Tensor& tensor : tensors) {
        if (has_dimensions(tensor, 2)) {
            return {tensor.size(0), tensor.size(1)};
        }
    }
    for (const at::Tensor& tensor : tensors) {
        if (has_dimensions(tensor, 1)) {
            return {tensor.size(0), 0};
        }
    }
    return {};
}

bool is_batch(const at::Tensor& tensor, std::int64_t dimension, const Sizes& sizes, bool strict) {
    return dimension == 0 && tensor.size(0) == sizes.batch && (tensor.dim() > 1 || !strict);
}

// The only dimension of a vector may be the length, too: positions in a cache.
bool is_length(const at::Tensor& tensor, std::int64_t dimension, const Sizes& sizes, bool strict) {
    const bool may_be = tensor.dim() == 1 ? sizes.length != sizes.batch || !strict
                                          : dimension == 1 || (dimension > 1 && !strict);
    return sizes.length > 0 && tensor.size(dimension) == sizes.length && may_be;
}

std::vector<std::int64_t> lengths_in(const at::Tensor& tensor, const Sizes& sizes, bool strict) {
    std::vector<std::int64_t> dimensions;
    for (std::int64_t i = 0; i < tensor.dim(); ++i) {
        if (is_length(tensor, i, sizes, strict)) {
            dimensions.push_back(i);
        }
    }
    return dimensions;
}

// Takes the first values, or the last; if there are too few, it starts again from the first.
at::Tensor resized(const at::Tensor& tensor, std::int64_t dimension, std::int64_t size,
                   bool from_end) {
    const std::int64_t have = tensor.size(dimension);
    const std::int64_t begin = from_end ? std::max<std::int64_t>(have - size, 0) : 0;
    const at::Tensor index = (at::arange(size, at::kLong) + begin).remainder(have);
    return tensor.index_select(dimension, index.to(tensor.device()));
}

// Shifts repeated rows, so that no two rows are alike: otherwise a kernel that reads the first row
// for every one would go unnoticed.
void move_repeated_rows(at::Tensor& tensor, std::int64_t rows, const Sizes& sizes, bool strict) {
    std::vector<std::int64_t> along = lengths_in(tensor, sizes, strict);
    std::erase(along, 0);
    for (std::int64_t row = rows; row < tensor.size(0); ++row) {
        at::Tensor values = tensor.select(0, row);
        if (!along.empty()) {
            std::vector<std::int64_t> dimensions;
            for (const std::int64_t dimension : along) {
                dimensions.push_back(dimension - 1);
            }
            const std::vector<std::int64_t> shifts(dimensions.size(), row / rows);
            values.copy_(values.roll(shifts, dimensions));
        } else if (tensor.dim() > 2 && tensor.is_floating_point()) {
            values.copy_(values.flip({-1}));  // mirrors an image
        }
    }
}

// A mask row that hides everything makes the result NaN.
bool hides_a_row(const at::Tensor& tensor) {
    if (!has_dimensions(tensor, 2) || tensor.numel() == 0) {
        return false;
    }
    if (tensor.is_floating_point()) {
        return (tensor < masked_out).all(-1).any().item<bool>();
    }
    const bool mask =
        tensor.scalar_type() == at::kBool || ((tensor == 0) | (tensor == 1)).all().item<bool>();
    return mask && (tensor == 0).all(-1).any().item<bool>();
}

bool hides_more(const Inputs& inputs, const Inputs& given) {
    const auto now = tensors_of(inputs);
    const auto before = tensors_of(given);
    for (std::size_t i = 0; i < now.size(); ++i) {
        if (hides_a_row(now[i]) && !hides_a_row(before[i])) {
            return true;
        }
    }
    return false;
}

// An odd length that differs from the other variants.
std::int64_t odd_length(std::int64_t length) {
    return length > 5 ? std::min(length - (length % 2 == 0 ? 1 : 2), largest_odd)
                      : (length == 5 ? 7 : 5);
}

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

Pairs sizes_beside(const Sizes& given) {
    Pairs wanted;
    const bool lengths = given.length > 0;
    for (const std::int64_t length :
         {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, odd_length(given.length)}) {
        if (lengths && length != given.length) {
            wanted.emplace_back(0, length);
        }
    }
    for (const std::int64_t batch : {1, 2, 3}) {
        if (batch != given.batch) {
            wanted.emplace_back(batch, 0);
        }
    }
    if (lengths && given.length <= short_length) {  // else batches come with such a length anyway
        wanted.emplace_back(given.batch == 2 ? 3 : 2, given.length == 3 ? 2 : 3);
    }
    return wanted;
}

// Sizes, and whether candidates are measured in them.
using Tuned = std::map<std::int64_t, bool>;

// Chooses in one dimension, which has `own` in the given inputs.
Tuned sizes_to_tune(std::int64_t own, const std::vector<std::int64_t>& wanted) {
    constexpr std::int64_t least_with_neighbour = 4;
    std::set<std::int64_t> measured(wanted.begin(), wanted.end());
    for (std::int64_t size = 1; wanted.empty() && size < own; size *= 4) {
        measured.insert(size);
    }
    Tuned sizes;
    for (const std::int64_t size : measured) {
        sizes[size] = true;
    }
    measured.insert(own);
    for (const std::int64_t size : measured) {
        if (size >= least_with_neighbour) {
            sizes.try_emplace(size - 1, false);
        }
    }
    sizes.erase(own);
    return sizes;
}

Sizes recognized_sizes(const Inputs& given) {
    const auto packed = PackedSequences::find(given);
    return packed ? Sizes{packed->count(), packed->longest()} : sizes_of(given);
}

// Keeps those that make sense, each once; the variants of one size have one number.
class VariantList {
public:
    explicit VariantList(const Inputs& given, std::size_t first_number = 0)
        : given_(given), number_(first_number) {}

    void add(SizeVariant variant) {
        variant.number = number_;
        variant.from_end = hides_more(variant.of(given_), given_);
        const Inputs inputs = variant.of(given_);
        if (!hides_more(inputs, given_) && made_.insert(shapes_text(inputs)).second) {
            variants.push_back(variant);
        }
    }
    void next() {
        made_.clear();
        ++number_;
    }

    std::vector<SizeVariant> variants;

private:
    const Inputs& given_;
    std::size_t number_;
    std::set<std::string> made_;  // strict variants often equal the others
};

}  // namespace

std::string SizeVariant::name() const {
    if (own != nullptr) {
        return "other inputs";
    }
    std::string text = batch > 0 ? fmt::format("batch {}", batch) : "";
    if (length > 0) {
        text += fmt::format("{}length {}", text.empty() ? "" : ", ", length);
    }
    return text;
}

Inputs SizeVariant::of(const Inputs& given) const {
    if (own != nullptr) {
        return deep_copy(*own);
    }
    if (const auto packed = PackedSequences::find(given)) {
        return packed->resized(given, batch, length, strict_batch);
    }
    const Sizes sizes = sizes_of(given);
    return mapped(given, [&](const at::Tensor& tensor) {
        if (!has_dimensions(tensor, 1)) {
            return tensor;
        }
        at::Tensor changed = tensor.clone();
        if (batch > 0 && is_batch(tensor, 0, sizes, strict_batch)) {
            changed = resized(changed, 0, batch, false);
            move_repeated_rows(changed, sizes.batch, sizes, strict_length);
        }
        if (length > 0) {
            for (const std::int64_t dimension : lengths_in(tensor, sizes, strict_length)) {
                if (!(dimension == 0 && batch > 0 && is_batch(tensor, 0, sizes, strict_batch))) {
                    changed = resized(changed, dimension, length, from_end);
                }
            }
        }
        return changed;
    });
}

std::vector<SizeVariant> size_variants(const Inputs& given) {
    const Sizes sizes = recognized_sizes(given);
    VariantList list(given);
    for (const auto& [batch, length] : sizes.batch > 0 ? sizes_beside(sizes) : Pairs()) {
        for (const bool strict_length : {false, true}) {
            for (const bool strict_batch : {false, true}) {
                if (batch > 0 && length == 0 && sizes.length > short_length) {
                    list.add({batch, 3, 0, strict_batch, strict_length, false});
                }
                list.add({batch, length, 0, strict_batch, strict_length, false});
            }
        }
        list.next();
    }
    return list.variants;
}

std::vector<SizeVariant> tuned_sizes(const Inputs& given, const std::vector<std::int64_t>& wanted,
                                     std::size_t first_number) {
    const Sizes sizes = recognized_sizes(given);
    VariantList list(given, first_number);
    const Tuned lengths = sizes.length > 0 ? sizes_to_tune(sizes.length, wanted) : Tuned();
    const Tuned batches = sizes.batch > 0 ? sizes_to_tune(sizes.batch, wanted) : Tuned();
    Tuned all = lengths;
    all.insert(batches.begin(), batches.end());
    for (const auto& [size, any] : all) {
        for (const bool strict : {false, true}) {
            if (const auto one = lengths.find(size); one != lengths.end()) {
                list.add({0, size, 0, strict, strict, false, one->second});
            }
        }
        for (const bool strict : {false, true}) {
            if (const auto one = batches.find(size); one != batches.end()) {
                list.add({size, 0, 0, strict, strict, false, one->second, sizes.length > 0});
            }
        }
        list.next();
    }
    return list.variants;
}

std::vector<std::int64_t> unmeasured_sizes(const Inputs& given, std::vector<std::int64_t> wanted,
                                           const std::vector<SizeVariant>& accepted) {
    const Sizes sizes = recognized_sizes(given);
    std::erase_if(wanted, [&](std::int64_t size) {
        return size == sizes.length || size == sizes.batch ||
               std::any_of(accepted.begin(), accepted.end(), [&](const auto& one) {
                   return one.tuned && one.own == nullptr &&
                          std::max(one.length, one.batch) == size;
               });
    });
    return wanted;
}

std::string shapes_text(const Inputs& inputs) {
    std::vector<std::string> parts;
    mapped(inputs, [&](const at::Tensor& tensor) {
        if (tensor.defined()) {
            parts.push_back(fmt::format("{}[{}]", dtype_name(tensor.scalar_type()),
                                        fmt::join(tensor.sizes(), ",")));
        }
        return tensor;
    });
    return fmt::format("{}", fmt::join(parts, ";"));
}

}  // namespace twinkle::runtime
