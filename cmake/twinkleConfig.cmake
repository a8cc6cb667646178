# find_package(twinkle [COMPONENTS hub runtime]): both, if nothing is named; OPTIONAL_COMPONENTS too.
#
#   twinkle::hub      twinkle/hub.h, without LibTorch
#   twinkle::twinkle  twinkle/twinkle.h and twinkle/c.h (component runtime), with the headers and
#                     libraries of LibTorch
#
# LibTorch is the one of find_package(Torch) if that came first, else TWINKLE_TORCH (a variable of CMake or
# of the environment: an unpacked libtorch, or site-packages/torch), else the one that twinkle was built with.
# LibTorch's own package is not needed: it asks for a CUDA toolkit where LibTorch was built for CUDA.
# Everything is found relative to this file, so that the tree may be moved.

get_filename_component(_twinkle_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT twinkle_FIND_COMPONENTS)
    set(twinkle_FIND_COMPONENTS hub runtime)
    set(twinkle_FIND_REQUIRED_hub TRUE)
    set(twinkle_FIND_REQUIRED_runtime TRUE)
endif()

function(_twinkle_version_of torch result)
    set(_version "")
    foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
        if(EXISTS "${torch}/include/${header}" AND NOT _version)
            file(READ "${torch}/include/${header}" _text)
            if(_text MATCHES "define TORCH_VERSION_MAJOR ([0-9]+)")
                set(_version ${CMAKE_MATCH_1})
            endif()
            if(_text MATCHES "define TORCH_VERSION_MINOR ([0-9]+)")
                set(_version "${_version}.${CMAKE_MATCH_1}")
            endif()
        endif()
    endforeach()
    set(${result} "${_version}" PARENT_SCOPE)
endfunction()

# The runtimes that are installed, and the LibTorch that each was built with (empty in packages).
file(GLOB _twinkle_runtimes "${_twinkle_prefix}/libexec/twinkle/torch*")
set(_twinkle_torch "")
if(TORCH_INSTALL_PREFIX)
    set(_twinkle_torch "${TORCH_INSTALL_PREFIX}")
elseif(TWINKLE_TORCH)
    set(_twinkle_torch "${TWINKLE_TORCH}")
elseif(DEFINED ENV{TWINKLE_TORCH})
    set(_twinkle_torch "$ENV{TWINKLE_TORCH}")
else()
    foreach(_twinkle_runtime IN LISTS _twinkle_runtimes)
        file(READ "${_twinkle_runtime}/runtime.json" _twinkle_text)
        if(_twinkle_text MATCHES "\"torch_lib\": \"([^\"]+)\"")
            if(EXISTS "${CMAKE_MATCH_1}/libtorch.so")
                get_filename_component(_twinkle_torch "${CMAKE_MATCH_1}" DIRECTORY)
            endif()
        endif()
    endforeach()
endif()

set(twinkle_hub_FOUND FALSE)
if(EXISTS "${_twinkle_prefix}/lib/libtwinkle-hub.so")
    set(twinkle_hub_FOUND TRUE)
    if(NOT TARGET twinkle::hub)
        add_library(twinkle::hub SHARED IMPORTED)
        set_target_properties(twinkle::hub PROPERTIES
            IMPORTED_LOCATION "${_twinkle_prefix}/lib/libtwinkle-hub.so"
            INTERFACE_INCLUDE_DIRECTORIES "${_twinkle_prefix}/include"
            INTERFACE_COMPILE_FEATURES cxx_std_20)
    endif()
endif()

set(twinkle_runtime_FOUND FALSE)
set(_twinkle_why "LibTorch is not found: set TWINKLE_TORCH to an unpacked libtorch or to site-packages/torch")
if(_twinkle_torch)
    _twinkle_version_of("${_twinkle_torch}" _twinkle_version)
    set(_twinkle_kind cpu)
    if(EXISTS "${_twinkle_torch}/lib/libtorch_cuda.so")
        set(_twinkle_kind cu)
    endif()
    file(GLOB _twinkle_fitting "${_twinkle_prefix}/libexec/twinkle/torch${_twinkle_version}-${_twinkle_kind}*")
    if(NOT _twinkle_fitting)  # one serves the CPU and the CUDA builds of a version
        file(GLOB _twinkle_fitting "${_twinkle_prefix}/libexec/twinkle/torch${_twinkle_version}-*")
    endif()
    set(_twinkle_why "no runtime for the LibTorch ${_twinkle_version} in ${_twinkle_torch} is installed; there are: ${_twinkle_runtimes}")
    if(_twinkle_version AND _twinkle_fitting)
        list(GET _twinkle_fitting 0 _twinkle_runtime)
        set(twinkle_runtime_FOUND TRUE)
    endif()
endif()
if(twinkle_runtime_FOUND AND NOT TARGET twinkle::twinkle)
    file(READ "${_twinkle_runtime}/runtime.json" _twinkle_text)
    set(_twinkle_cxx11 1)
    if(_twinkle_text MATCHES "\"cxx11\": false")
        set(_twinkle_cxx11 0)
    endif()
    add_library(twinkle::twinkle SHARED IMPORTED)
    set_target_properties(twinkle::twinkle PROPERTIES
        IMPORTED_LOCATION "${_twinkle_runtime}/libtwinkle.so"
        # Of imported targets they are system headers: their warnings are not the user's.
        INTERFACE_INCLUDE_DIRECTORIES
            "${_twinkle_prefix}/include;${_twinkle_torch}/include;${_twinkle_torch}/include/torch/csrc/api/include"
        INTERFACE_COMPILE_DEFINITIONS _GLIBCXX_USE_CXX11_ABI=${_twinkle_cxx11}
        INTERFACE_COMPILE_FEATURES cxx_std_20
        # libtorch.so pulls in the CUDA half, where there is one; nothing refers to it by symbol. A C program refers to
        # none of the three, and libtwinkle relies on the program for finding them.
        INTERFACE_LINK_LIBRARIES "${_twinkle_torch}/lib/libtorch_cpu.so;${_twinkle_torch}/lib/libc10.so"
        INTERFACE_LINK_OPTIONS "LINKER:--push-state,--no-as-needed;${_twinkle_torch}/lib/libtorch.so;${_twinkle_torch}/lib/libtorch_cpu.so;${_twinkle_torch}/lib/libc10.so;LINKER:--pop-state")
endif()

set(twinkle_FOUND TRUE)
foreach(_twinkle_component IN LISTS twinkle_FIND_COMPONENTS)
    if(twinkle_FIND_REQUIRED_${_twinkle_component} AND NOT twinkle_${_twinkle_component}_FOUND)
        set(twinkle_FOUND FALSE)
        set(twinkle_NOT_FOUND_MESSAGE "twinkle's ${_twinkle_component} is missing")
        if(_twinkle_component STREQUAL runtime)
            set(twinkle_NOT_FOUND_MESSAGE "${_twinkle_why}")
        endif()
    endif()
endforeach()
