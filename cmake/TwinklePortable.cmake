# -DTWINKLE_PORTABLE=DIR: link for other distributions, with what script/portable has put into DIR. Only what is linked
# differs: object files are the same.
set(TWINKLE_PORTABLE "" CACHE PATH "Folder made by script/portable: link for glibc 2.28 and later")
if(NOT TWINKLE_PORTABLE)
    return()
endif()
if(NOT EXISTS ${TWINKLE_PORTABLE}/lib/libcurl.a)
    message(FATAL_ERROR "TWINKLE_PORTABLE=${TWINKLE_PORTABLE} has no lib/libcurl.a: script/portable makes it")
endif()
set(_lib ${TWINKLE_PORTABLE}/lib)
set(OPENSSL_USE_STATIC_LIBS ON)
# What is linked statically is nobody else's business: a process may hold another OpenSSL, and has LibTorch's libstdc++.
# Libraries of the system want a newer glibc than is linked; the one that they meet has it.
add_link_options(-B${_lib} -L${_lib} LINKER:--allow-shlib-undefined
    LINKER:--exclude-libs,libcrypto.a:libssl.a:libcurl.a:libnghttp2.a:libz.a:libstdc++_newer.a:libc_nonshared.a:libgcc.a)

# twinkle_link_curl(TARGET): instead of opening the system's libcurl.
function(twinkle_link_curl target)
    target_compile_definitions(${target} PRIVATE TWINKLE_CURL_IS_LINKED)
    target_link_libraries(${target} PUBLIC ${TWINKLE_PORTABLE}/lib/libcurl.a OpenSSL::SSL OpenSSL::Crypto
        ${TWINKLE_PORTABLE}/lib/libnghttp2.a ${TWINKLE_PORTABLE}/lib/libz.a)
    target_include_directories(${target} SYSTEM BEFORE PRIVATE ${TWINKLE_PORTABLE}/include)
endfunction()

# twinkle_stub_torch(RESULT): a folder of stubs for LibTorch's libraries. These export much of the libstdc++ that they
# were built with, which would be taken from them, and from the next LibTorch only if it is built alike.
function(twinkle_stub_torch result)
    set(folder ${CMAKE_BINARY_DIR}/torch-stubs)
    file(MAKE_DIRECTORY ${folder})
    foreach(name torch torch_cpu c10)
        if(${TWINKLE_TORCH_LIB}/lib${name}.so IS_NEWER_THAN ${folder}/lib${name}.so)
            execute_process(COMMAND ${TWINKLE_TORCH_PYTHON} ${PROJECT_SOURCE_DIR}/script/stub_library.py
                ${TWINKLE_TORCH_LIB}/lib${name}.so ${folder}/lib${name}.so --without-std COMMAND_ERROR_IS_FATAL ANY)
        endif()
    endforeach()
    set(${result} ${folder} PARENT_SCOPE)
endfunction()
