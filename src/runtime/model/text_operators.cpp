#include "runtime/model/text_operators.h"

#include <string>

namespace twinkle::runtime {

namespace {

// LibTorch 2.6 to 2.15, each name between two spaces.
constexpr std::string_view names =
    " Delete Float Int __contains__ __getitem__ __interpolate __upsample _assert_async "
    "_assert_scalar _convolution_mode _functional_assert_async _functional_assert_scalar "
    "_linalg_check_errors _linalg_eigh _linalg_svd _set_item add any append capitalize "
    "center clear conv1d conv2d conv3d copy count device dict div div_ divide divide_ "
    "einsum endswith eq expandtabs extend fft_fft fft_fft2 fft_fftn fft_hfft fft_hfft2 "
    "fft_hfftn fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft "
    "fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn find format ge gelu gelu_ get "
    "get_autocast_dtype gt hash index index_reduce index_reduce_ insert isalnum isalpha "
    "isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper "
    "items join keys le len linalg_cond linalg_eigh linalg_eigvalsh linalg_lstsq "
    "linalg_matrix_norm linalg_norm linalg_qr linalg_svd linalg_svdvals list ljust lower "
    "lstrip lt meshgrid mul nanquantile ne norm ord pad pad_sequence partition "
    "percentFormat pop popitem quantile remove replace reverse rfind rindex rjust "
    "rpartition rsplit rstrip scatter scatter_ scatter_reduce scatter_reduce_ "
    "searchsorted segment_reduce setdefault slice sort sorted split splitlines startswith "
    "stft str strip swapcase title update upper values warn zfill ";

}  // namespace

bool takes_text_to_compute(std::string_view name) {
    return name.find(' ') == std::string_view::npos &&
           names.find(" " + std::string(name) + " ") != std::string_view::npos;
}

}  // namespace twinkle::runtime
