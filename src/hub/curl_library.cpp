// libcurl is opened at its first use instead of being linked: it brings thirty libraries with it,
// and loading them would take longer than most commands run. The functions of libcurl that twinkle
// calls are defined here, under their own names, and forward every call. Portable packages link it
// instead (cmake/TwinklePortable.cmake).
#ifndef TWINKLE_CURL_IS_LINKED

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <dlfcn.h>

#include <cstdarg>
#include <string>

#include "twinkle/error.h"

// The header wraps these in macros.
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

namespace {

void* open_library() {
    // The names in Debian and Ubuntu; the GnuTLS build only if there is no other.
    for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
        if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
            return library;
        }
    }
    using namespace twinkle;
    throw Error(ErrorCode::failed,
                {.what = "libcurl cannot be loaded",
                 .where = "libcurl.so.4",
                 .why = "the dynamic linker does not find it",
                 .hint = "install it (Debian, Ubuntu: apt-get install libcurl4)"});
}

// Throws Error(failed) if there is no libcurl, or it is older than the function.
void* find(const char* name) {
    static void* const library = open_library();
    void* function = dlsym(library, name);
    if (function == nullptr) {
        using namespace twinkle;
        throw Error(ErrorCode::failed, {.what = "libcurl is too old",
                                        .where = "libcurl.so.4",
                                        .why = std::string("it has no function ") + name,
                                        .hint = "install a newer one: 7.81 or later"});
    }
    return function;
}

template <class Function>
Function* real(const char* name) {
    return reinterpret_cast<Function*>(find(name));
}

// Newer headers take a const CURLU*.
template <class Result, class First, class... Rest>
First first_of(Result (*)(First, Rest...));
template <class Function>
using first_argument = decltype(first_of(static_cast<Function*>(nullptr)));

}  // namespace

extern "C" {

// The parameters of these macros are types and lists.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define FORWARD(result, name, parameters, arguments)               \
    result name parameters {                                       \
        static auto* const function = real<decltype(name)>(#name); \
        return function arguments;                                 \
    }

FORWARD(CURLcode, curl_global_init, (long flags), (flags))
FORWARD(CURL*, curl_easy_init, (void), ())
FORWARD(void, curl_easy_cleanup, (CURL * easy), (easy))
FORWARD(void, curl_easy_reset, (CURL * easy), (easy))
FORWARD(CURLcode, curl_easy_pause, (CURL * easy, int what), (easy, what))
FORWARD(const char*, curl_easy_strerror, (CURLcode code), (code))
FORWARD(void, curl_free, (void* pointer), (pointer))
FORWARD(time_t, curl_getdate, (const char* text, const time_t* unused), (text, unused))
FORWARD(CURLM*, curl_multi_init, (void), ())
FORWARD(CURLMcode, curl_multi_cleanup, (CURLM * multi), (multi))
FORWARD(CURLMcode, curl_multi_add_handle, (CURLM * multi, CURL* easy), (multi, easy))
FORWARD(CURLMcode, curl_multi_remove_handle, (CURLM * multi, CURL* easy), (multi, easy))
FORWARD(CURLMcode, curl_multi_perform, (CURLM * multi, int* running), (multi, running))
FORWARD(CURLMsg*, curl_multi_info_read, (CURLM * multi, int* left), (multi, left))
FORWARD(CURLMcode, curl_multi_poll,
        (CURLM * multi, curl_waitfd* more, unsigned count, int milliseconds, int* ready),
        (multi, more, count, milliseconds, ready))
FORWARD(CURLMcode, curl_multi_wakeup, (CURLM * multi), (multi))
FORWARD(curl_slist*, curl_slist_append, (curl_slist * list, const char* text), (list, text))
FORWARD(void, curl_slist_free_all, (curl_slist * list), (list))
FORWARD(CURLU*, curl_url, (void), ())
FORWARD(void, curl_url_cleanup, (CURLU * url), (url))
FORWARD(CURLUcode, curl_url_get,
        (first_argument<decltype(curl_url_get)> url, CURLUPart part, char** text, unsigned flags),
        (url, part, text, flags))
FORWARD(CURLUcode, curl_url_set, (CURLU * url, CURLUPart part, const char* text, unsigned flags),
        (url, part, text, flags))

// Their last argument is a long, a curl_off_t or a pointer: one register on every 64-bit Linux.
static_assert(sizeof(long) == sizeof(void*) && sizeof(curl_off_t) == sizeof(void*));

#define FORWARD_VARIADIC(result, name, handle, option)             \
    result name(handle* object, option what, ...) {                \
        static auto* const function = real<decltype(name)>(#name); \
        va_list rest;                                              \
        va_start(rest, what);                                      \
        void* const value = va_arg(rest, void*);                   \
        va_end(rest);                                              \
        return function(object, what, value);                      \
    }

FORWARD_VARIADIC(CURLcode, curl_easy_setopt, CURL, CURLoption)
FORWARD_VARIADIC(CURLcode, curl_easy_getinfo, CURL, CURLINFO)
FORWARD_VARIADIC(CURLMcode, curl_multi_setopt, CURLM, CURLMoption)

// NOLINTEND(bugprone-macro-parentheses)

}  // extern "C"

#endif
