# Finds LibTorch without its own CMake package (which wants a CUDA toolkit for CUDA builds): an
# unpacked libtorch, or the torch folder of a Python environment.
#   -DTWINKLE_TORCH=DIR (or the environment variable): that one
#   else the torch of build/venv, else that of python3
# Defines: twinkle_torch (INTERFACE target), TWINKLE_TORCH_VERSION (2.13.0), TWINKLE_TORCH_BACKEND
# (cpu, cu130), TWINKLE_TORCH_CXX11 (0|1), TWINKLE_TORCH_LIB (folder), TWINKLE_TORCH_PYTHON (a python3
# for build scripts), TWINKLE_TORCH_TAG (torch2.13-cpu).

set(TWINKLE_TORCH "$ENV{TWINKLE_TORCH}" CACHE PATH "LibTorch: unpacked zip or site-packages/torch")
set(_venv_python ${PROJECT_SOURCE_DIR}/build/venv/bin/python)

function(_twinkle_torch_of python result)
    execute_process(
        COMMAND ${python} -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
        OUTPUT_VARIABLE found ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    set(${result} "${found}" PARENT_SCOPE)
endfunction()

find_program(_system_python python3)
if(NOT TWINKLE_TORCH AND EXISTS ${_venv_python})
    _twinkle_torch_of(${_venv_python} _found)
    set(TWINKLE_TORCH "${_found}" CACHE PATH "" FORCE)
endif()
if(NOT TWINKLE_TORCH AND _system_python)
    _twinkle_torch_of(${_system_python} _found)
    set(TWINKLE_TORCH "${_found}" CACHE PATH "" FORCE)
endif()
if(NOT EXISTS "${TWINKLE_TORCH}/lib/libtorch.so" OR NOT EXISTS "${TWINKLE_TORCH}/include/torch/script.h")
    message(FATAL_ERROR "LibTorch is not at '${TWINKLE_TORCH}'. Run script/setup, name it with "
            "-DTWINKLE_TORCH=DIR (an unpacked libtorch, or site-packages/torch), or build the command "
            "line alone with -DTWINKLE_RUNTIME=OFF.")
endif()
if(EXISTS ${_venv_python})
    set(TWINKLE_TORCH_PYTHON ${_venv_python})
else()
    set(TWINKLE_TORCH_PYTHON ${_system_python})
endif()

set(TWINKLE_TORCH_LIB ${TWINKLE_TORCH}/lib)
foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(EXISTS ${TWINKLE_TORCH}/include/${header})
        file(READ ${TWINKLE_TORCH}/include/${header} _text)
        foreach(part MAJOR MINOR PATCH)
            if(_text MATCHES "define TORCH_VERSION_${part} ([0-9]+)")
                set(_${part} ${CMAKE_MATCH_1})
            endif()
        endforeach()
        break()
    endif()
endforeach()
set(TWINKLE_TORCH_VERSION ${_MAJOR}.${_MINOR}.${_PATCH})

set(TWINKLE_TORCH_BACKEND cpu)
if(EXISTS ${TWINKLE_TORCH_LIB}/libtorch_cuda.so)
    set(_local "")
    foreach(file version.py build-version)
        if(EXISTS ${TWINKLE_TORCH}/${file})
            file(READ ${TWINKLE_TORCH}/${file} _text)
            if(_text MATCHES "(cu[0-9]+)")
                set(_local ${CMAKE_MATCH_1})
            elseif(_text MATCHES "cuda[^=]*= *'([0-9]+)\\.([0-9]+)'")
                set(_local cu${CMAKE_MATCH_1}${CMAKE_MATCH_2})
            endif()
        endif()
    endforeach()
    if(NOT _local)
        message(FATAL_ERROR "The CUDA version of the LibTorch in ${TWINKLE_TORCH} cannot be told")
    endif()
    set(TWINKLE_TORCH_BACKEND ${_local})
endif()

# Wheels before 2.7 were built with the old string ABI; the library itself tells.
file(STRINGS ${TWINKLE_TORCH_LIB}/libc10.so _cxx11 REGEX "^_ZN3c105ErrorC[12].*__cxx11" LIMIT_COUNT 1)
if(_cxx11)
    set(TWINKLE_TORCH_CXX11 1)
else()
    set(TWINKLE_TORCH_CXX11 0)
endif()
set(TWINKLE_TORCH_TAG torch${_MAJOR}.${_MINOR}-${TWINKLE_TORCH_BACKEND})
message(STATUS "LibTorch ${TWINKLE_TORCH_VERSION} (${TWINKLE_TORCH_BACKEND}) in ${TWINKLE_TORCH}")

add_library(twinkle_torch INTERFACE)
target_include_directories(twinkle_torch SYSTEM INTERFACE
    ${TWINKLE_TORCH}/include ${TWINKLE_TORCH}/include/torch/csrc/api/include)
target_compile_options(twinkle_torch INTERFACE ${TWINKLE_TORCH_CXX_FLAGS})  # e.g. -O0, as script/compat says
target_compile_definitions(twinkle_torch INTERFACE _GLIBCXX_USE_CXX11_ABI=${TWINKLE_TORCH_CXX11})
if(NOT TWINKLE_TORCH_CXX11)
    # For everything: what sees LibTorch and what does not pass each other strings.
    add_compile_definitions($<$<COMPILE_LANGUAGE:CXX>:_GLIBCXX_USE_CXX11_ABI=0>)
endif()
# The folder that is linked from.
set(TWINKLE_TORCH_LINK ${TWINKLE_TORCH_LIB})
if(TWINKLE_PORTABLE)
    twinkle_stub_torch(TWINKLE_TORCH_LINK)
endif()
target_link_libraries(twinkle_torch INTERFACE
    ${TWINKLE_TORCH_LINK}/libtorch_cpu.so ${TWINKLE_TORCH_LINK}/libc10.so)
# libtorch.so pulls in the CUDA half, where there is one; nothing refers to it by symbol. That is for programs: a library
# is loaded into a process that has what it has, which may be libtorch_cpu.so alone.
target_link_options(twinkle_torch INTERFACE
    "$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:LINKER:--push-state,--no-as-needed;${TWINKLE_TORCH_LINK}/libtorch.so;LINKER:--pop-state>")
