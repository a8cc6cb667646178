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
            const int64_t image = r / copy.height, y = r - image * copy.height;
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

template <class T>
void copy_runs(ConvCall& call, ConvPiece& piece, int64_t per_group, ParallelFor parallel) {
    ConvShape& shape = call.shape;
    Copy<T> copy{shape,
                 static_cast<const T*>(piece.x),
                 nullptr,
                 (shape.channels + per_group - 1) / per_group * per_group,
                 shape.height + 2 * shape.padding[0],
                 shape.width + 2 * shape.padding[1]};
    const int64_t line = copy.width * copy.channels, rows = shape.images * copy.height;
    const int64_t weights = shape.out_channels * shape.taps * copy.channels;
    copy.to =
        static_cast<T*>(call_scratch((rows * line + weights) * static_cast<int64_t>(sizeof(T))));
    copy.weights(static_cast<const T*>(piece.weight), copy.to + rows * line);
    parallel(rows, std::max<int64_t>(1, rules::grain_elements / line), Copy<T>::rows, &copy);
    piece.x = copy.to;
    piece.weight = copy.to + rows * line;
    shape.x_image = copy.height * line;
    shape.x_row = line;
    shape.x_pixel = copy.channels;
    shape.x_channel = 1;
    shape.height = copy.height;
    shape.width = copy.width;
    shape.channels = shape.kernel[1] * copy.channels;
    shape.taps = shape.kernel[0];
    shape.kernel[1] = 1;
    shape.padding[0] = shape.padding[1] = 0;
    shape.depth = shape.taps * shape.channels;
    shape.weight_in = 1;
    shape.weight_tap = shape.channels;
    shape.is_patched = false;
}

// With its padding, which may be a million pixels, and strides that leave most of it out.
bool is_small_copy(const ConvShape& shape) {
    constexpr int64_t always = int64_t{1} << 20, most_of_result = 4;
    int64_t elements = shape.images;
    for (const int64_t size : {shape.channels + 1, shape.height + 2 * shape.padding[0],
                               shape.width + 2 * shape.padding[1]})
        if (__builtin_mul_overflow(elements, size, &elements)) return false;
    return elements <= always ||
           elements / most_of_result <= shape.images * shape.out_pixels * shape.out_channels;
}

}  // namespace

bool can_be_runs(const ConvCall& call) {
    const ConvShape& shape = call.shape;
    return shape.is_patched && call.groups == 1 && shape.dilation[1] == 1 && is_small_copy(shape);
}

void make_runs(ConvCall& call, ConvPiece& piece, int64_t size, int64_t per_group,
               ParallelFor parallel) {
    if (size == 4)
        copy_runs<uint32_t>(call, piece, per_group, parallel);
    else
        copy_runs<uint16_t>(call, piece, per_group, parallel);
}

}  // namespace twinkle_pack
