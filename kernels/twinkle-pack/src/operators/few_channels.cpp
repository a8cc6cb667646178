#include "operators/few_channels.h"

#include <algorithm>

#include "operators/images.h"
#include "operators/scratch.h"

namespace twinkle_pack {
namespace {

template <class T>
struct Copy {
    ConvShape from;
    const T* x;
    T* to;
    int64_t channels, height, width;  // of the copy
    int64_t apart;                    // rows that lie one behind the other

    void row(int64_t image, int64_t y, T* line) const {
        std::fill(line, line + width * channels, T{});
        if (y < 0 || y >= from.height) return;
        const T* const first = x + image * from.x_image + y * from.x_row;
        T* const inside = line + from.padding[1] * channels;
        for (int64_t c = 0; c < from.channels; ++c)
            for (int64_t column = 0; column < from.width; ++column)
                inside[column * channels + c] = first[c * from.x_channel + column * from.x_pixel];
    }

    static void rows(int64_t begin, int64_t end, void* context) {
        const Copy& copy = *static_cast<const Copy*>(context);
        for (int64_t r = begin; r < end; ++r) {
            const int64_t image = r / copy.height, at = r - image * copy.height;
            const int64_t of_phase = copy.height / copy.apart;
            const int64_t y = at % of_phase * copy.apart + at / of_phase;
            copy.row(image, y - copy.from.padding[0], copy.to + r * copy.width * copy.channels);
        }
    }

    // [channel of the result][row of the kernel][column][channel], of a plain weight.
    void weights(const T* weight, T* into) const {
        const int64_t depth = from.taps * channels;
        std::fill(into, into + from.out_channels * depth, T{});
        for (int64_t k = 0; k < from.out_channels; ++k)
            for (int64_t c = 0; c < from.channels; ++c)
                for (int64_t tap = 0; tap < from.taps; ++tap)
                    into[k * depth + tap * channels + c] = *weight++;
    }
};

int64_t rounded(int64_t value, int64_t to) {
    return (value + to - 1) / to * to;
}

template <class T>
void* copy_runs(ConvCall& call, ConvPiece& piece, int64_t per_group, ParallelFor parallel,
                RunRows rows_of_copy) {
    ConvShape& shape = call.shape;
    Copy<T> copy{shape,
                 static_cast<const T*>(piece.x),
                 nullptr,
                 rounded(shape.channels, per_group),
                 rounded(shape.height + 2 * shape.padding[0], rows_of_copy.apart),
                 rounded(shape.width + 2 * shape.padding[1], rows_of_copy.multiple),
                 rows_of_copy.apart};
    constexpr int64_t size = sizeof(T), cache_line = 64;
    const int64_t line = copy.width * copy.channels, rows = shape.images * copy.height;
    const int64_t weights = shape.out_channels * shape.taps * copy.channels;
    const int64_t bytes = rounded((rows * line + weights) * size, cache_line);
    copy.to = static_cast<T*>(call_scratch(bytes + rows_of_copy.bytes_after));
    copy.weights(static_cast<const T*>(piece.weight), copy.to + rows * line);
    parallel(rows, std::max<int64_t>(1, rules::grain_elements / line), Copy<T>::rows, &copy);
    piece.x = copy.to;
    piece.weight = copy.to + rows * line;
    shape = shape_of_runs(shape, per_group);
    shape.x_image = copy.height * line;
    shape.x_row = line;
    shape.x_pixel = copy.channels;
    return reinterpret_cast<char*>(copy.to) + bytes;
}

// With its padding, which may be a million pixels, and strides that leave most of it out.
bool is_small_copy(const ConvShape& shape, const RunRows& rows) {
    constexpr int64_t always = int64_t{1} << 20, most_of_result = 4;
    int64_t elements = shape.images;
    for (const int64_t size :
         {shape.channels + 1, rounded(shape.height + 2 * shape.padding[0], rows.apart),
          rounded(shape.width + 2 * shape.padding[1], rows.multiple)})
        if (__builtin_mul_overflow(elements, size, &elements)) return false;
    return elements <= always ||
           elements / most_of_result <= shape.images * shape.out_pixels * shape.out_channels;
}

}  // namespace

bool can_be_runs(const ConvCall& call, RunRows rows) {
    const ConvShape& shape = call.shape;
    return shape.is_patched && call.groups == 1 && shape.dilation[1] == 1 &&
           is_small_copy(shape, rows);
}

ConvShape shape_of_runs(const ConvShape& shape, int64_t per_group) {
    ConvShape runs = shape;
    runs.x_channel = 1;
    runs.height = shape.height + 2 * shape.padding[0];
    runs.width = shape.width + 2 * shape.padding[1];
    runs.channels = shape.kernel[1] * rounded(shape.channels, per_group);
    runs.taps = shape.kernel[0];
    runs.kernel[1] = 1;
    runs.padding[0] = runs.padding[1] = 0;
    runs.depth = runs.taps * runs.channels;
    runs.weight_in = 1;
    runs.weight_tap = runs.channels;
    runs.is_patched = false;
    return runs;
}

void* make_runs(ConvCall& call, ConvPiece& piece, int64_t size, int64_t per_group,
                ParallelFor parallel, RunRows rows) {
    return size == 4 ? copy_runs<uint32_t>(call, piece, per_group, parallel, rows)
                     : copy_runs<uint16_t>(call, piece, per_group, parallel, rows);
}

}  // namespace twinkle_pack
