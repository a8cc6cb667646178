// What some pixels of a convolution see of x, copied into the cache: with the padding written out,
// and for strides with each phase by itself. So for every tap of the kernel neighbouring pixels
// have neighbouring elements.
//
// Of each channel: [phase][row][column]. Pixel (y, x) reads, for the tap (i, j), row y + i *
// dilation / stride of the phase that is the remainder, and columns alike.

// One of the two directions: which phases the taps of the kernel use, and how far they reach.
struct Phases {
    int64_t count = 0, reach = 0;
    int64_t remainder[most_conv_stride];              // of each phase
    int64_t phase[most_kernel], offset[most_kernel];  // of each tap

    Phases(int64_t kernel, int64_t stride, int64_t dilation) {
        for (int64_t i = 0; i < kernel; ++i) {
            const int64_t rest = i * dilation % stride;
            int64_t at = 0;
            while (at < count && remainder[at] != rest) ++at;
            if (at == count) remainder[count++] = rest;
            phase[i] = at;
            offset[i] = i * dilation / stride;
        }
        reach = offset[kernel - 1];
    }
};

struct Band {
    const ConvShape& shape;
    Phases down, across;
    int64_t first_row, last_row;  // rows of the result, through all images
    int64_t first_column, columns;
    int64_t rows;  // of a phase
    int64_t pitch, phase_size, channel_size;

    Band(const ConvShape& of, int64_t pixel_begin, int64_t pixel_end)
        : shape(of),
          down(of.kernel[0], of.stride[0], of.dilation[0]),
          across(of.kernel[1], of.stride[1], of.dilation[1]),
          first_row(pixel_begin / of.out_width),
          last_row((pixel_end - 1) / of.out_width) {
        const bool is_part = first_row == last_row;
        first_column = is_part ? pixel_begin - first_row * of.out_width : 0;
        columns = is_part ? pixel_end - pixel_begin : of.out_width;
        const int64_t images = last_row / of.out_height - first_row / of.out_height + 1;
        rows = last_row - first_row + 1 + images * down.reach;
        pitch = columns + across.reach;
        phase_size = rows * pitch;
        channel_size = down.count * across.count * phase_size;
    }

    // Where a pixel's first tap is in a channel of the band, and the others from there.
    int64_t of_row(int64_t row) const {
        const int64_t images_before = row / shape.out_height - first_row / shape.out_height;
        return (row - first_row + images_before * down.reach) * pitch;
    }
    int64_t of_tap(int64_t i, int64_t j) const {
        return (down.phase[i] * across.count + across.phase[j]) * phase_size +
               down.offset[i] * pitch + across.offset[j];
    }

    void list_taps(int64_t* to) const {
        for (int64_t i = 0; i < shape.kernel[0]; ++i)
            for (int64_t j = 0; j < shape.kernel[1]; ++j)
                to[i * shape.kernel[1] + j] = of_tap(i, j);
    }

    // `channels` channels from x on; `padding` is what lies beside them.
    template <class V, class T>
    void copy(const T* x, int64_t channels, T padding, T* to) const {
        for (int64_t c = 0; c < channels; ++c)
            for (int64_t row = first_row; row <= last_row;) {
                const int64_t image = row / shape.out_height;
                const int64_t y = row - image * shape.out_height;
                const int64_t left = last_row - row + 1, rest = shape.out_height - y;
                const int64_t count = left < rest ? left : rest;
                copy_image<V>(x + image * shape.x_image + c * shape.x_channel, y, count, padding,
                              to + c * channel_size + of_row(row));
                row += count;
            }
    }

private:
    template <class V, class T>
    void copy_image(const T* plane, int64_t y, int64_t count, T padding, T* to) const {
        for (int64_t i = 0; i < down.count; ++i)
            for (int64_t j = 0; j < across.count; ++j)
                for (int64_t r = 0; r < count + down.reach; ++r)
                    copy_row<V>(plane,
                                (y + r) * shape.stride[0] + down.remainder[i] - shape.padding[0],
                                across.remainder[j] - shape.padding[1], padding,
                                to + (i * across.count + j) * phase_size + r * pitch);
    }

    // Column q has the element q * stride + start of a row of x, or zero.
    template <class V, class T>
    void copy_row(const T* plane, int64_t y, int64_t offset, T padding, T* to) const {
        int64_t begin = 0, end = 0;
        const int64_t step = shape.stride[1];
        const int64_t start = first_column * step + offset;
        if (y >= 0 && y < shape.height && start < shape.width) {
            begin = start < 0 ? (step - 1 - start) / step : 0;
            end = (shape.width - start + step - 1) / step;
            if (end > pitch) end = pitch;
            if (begin > end) begin = end;
        }
        for (int64_t q = 0; q < begin; ++q) to[q] = padding;
        copy_every<V>(plane + y * shape.x_row + start + begin * step, step, end - begin,
                      to + begin);
        for (int64_t q = end; q < pitch; ++q) to[q] = padding;
    }

    template <class V, class T>
    static void copy_every(const T* from, int64_t step, int64_t n, T* to) {
        int64_t q = 0;
        if (step == 1) {
            __builtin_memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
            return;
        }
        if constexpr (requires { V::copy_even(from, n, to); })
            for (; step == 2 && q < n; q += V::width)
                V::copy_even(from + 2 * q, n - q < V::width ? n - q : V::width, to + q);
        for (; q < n; ++q) to[q] = from[q * step];
    }
};
