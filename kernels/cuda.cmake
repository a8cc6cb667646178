# The CUDA build of the pack: the same operators, for CPU and CUDA devices in one library. It needs nvcc, and
# neither a GPU nor a CUDA build of LibTorch; one build serves every LibTorch from 2.10 on of its CUDA's major version.
if(TWINKLE_TORCH_VERSION VERSION_LESS 2.10)
    message(FATAL_ERROR "TWINKLE_CUDA needs LibTorch 2.10 or newer (its stable ABI); this is ${TWINKLE_TORCH_VERSION}")
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
# CMake 3.25 does not know it yet.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
endif()

# Machine code for these, and PTX of the last for what comes after.
set(_archs 75 80 86 89 90)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
    list(APPEND _archs 100 120)
endif()
set(TWINKLE_CUDA_ARCHS "${_archs}" CACHE STRING "GPU architectures to build the pack for (90: Hopper)")
set(architectures "")
set(declared "")
foreach(arch ${TWINKLE_CUDA_ARCHS})
    list(APPEND architectures ${arch}-real)
    string(REGEX REPLACE "^([0-9]+)([0-9])$" "\\1.\\2" dotted ${arch})
    list(APPEND declared ${dotted})
endforeach()
list(POP_BACK architectures last)
string(REPLACE "-real" "" last ${last})
list(APPEND architectures ${last})
list(POP_BACK declared last)
list(APPEND declared ${last}+PTX)

file(GLOB cuda_sources CONFIGURE_DEPENDS ${pack}/src/cuda/*.cu)
file(GLOB cuda_headers CONFIGURE_DEPENDS ${pack}/src/cuda/*.h)
set(cuda_hashes "${hashes}${declared}${CMAKE_CUDA_COMPILER_VERSION}")
hash_sources(cuda_hashes hash ${cuda_sources} ${cuda_headers})
set(cuda_id twinkle_pack_cuda_${hash})

function(add_cuda_kernels name archs)
    add_library(${name} OBJECT ${ARGN})
    target_include_directories(${name} PRIVATE ${pack}/src)
    # Products and sums are rounded as they are written, as on the CPU.
    target_compile_options(${name} PRIVATE -O3 -fmad=false -Xfatbin=-compress-all
                           "$<$<BOOL:${TWINKLE_CUDA_VERBOSE}>:-Xptxas=-v>")
    set_target_properties(${name} PROPERTIES
        CUDA_ARCHITECTURES "${archs}" CUDA_STANDARD 20 CUDA_EXTENSIONS OFF
        CUDA_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
endfunction()
# What is in instructions of Hopper alone, which no other GPU has.
set(hopper_sources ${pack}/src/cuda/bits_strips.cu ${pack}/src/cuda/fp8_products.cu)
set(cuda_objects twinkle_pack_cuda_kernels)
if(90 IN_LIST TWINKLE_CUDA_ARCHS)
    list(REMOVE_ITEM cuda_sources ${hopper_sources})
    add_cuda_kernels(twinkle_pack_hopper_kernels 90a-real ${hopper_sources})
    list(APPEND cuda_objects twinkle_pack_hopper_kernels)
endif()
add_cuda_kernels(twinkle_pack_cuda_kernels "${architectures}" ${cuda_sources})

add_library(twinkle_torch_cuda_stub SHARED torch_cuda_stub.c)
set_target_properties(twinkle_torch_cuda_stub PROPERTIES
    OUTPUT_NAME torch_cuda LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/stub)

add_library(twinkle_pack_cuda MODULE ${pack}/src/register_stable.cpp)
# CUDA's runtime is linked statically: an unpacked LibTorch brings its own under another name.
target_link_libraries(twinkle_pack_cuda PRIVATE twinkle_options twinkle_pack_core ${cuda_objects}
                      CUDA::cudart_static twinkle_torch_cuda_stub ${TWINKLE_TORCH_LINK}/libtorch_cpu.so)
target_include_directories(twinkle_pack_cuda SYSTEM PRIVATE ${TWINKLE_TORCH}/include)
target_compile_definitions(twinkle_pack_cuda PRIVATE TORCH_TARGET_VERSION=0x020a000000000000
                           TWINKLE_PACK_ID="${cuda_id}" TWINKLE_PACK_CUDA)
set_target_properties(twinkle_pack_cuda PROPERTIES
    PREFIX "" OUTPUT_NAME _${cuda_id} SKIP_BUILD_RPATH ON LINKER_LANGUAGE CXX)
target_link_options(twinkle_pack_cuda PRIVATE LINKER:--as-needed LINKER:-z,now LINKER:--exclude-libs,ALL)

string(REGEX REPLACE "^([0-9]+)\\.([0-9]+).*" "\\1\\2" cuda_version ${CMAKE_CUDA_COMPILER_VERSION})
set(cuda_variant torch-stable-abi210-cu${cuda_version}-${CMAKE_SYSTEM_PROCESSOR}-${os})
set(cuda_pack_dir ${TWINKLE_KERNELS_DIR}/twinkle-pack/build/${cuda_variant})
add_custom_command(
    OUTPUT ${cuda_pack_dir}/metadata.json
    COMMAND ${TWINKLE_TORCH_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/package.py --python ${pack}/python
            --for-torch ${pack_for_torch}
            --library $<TARGET_FILE:twinkle_pack_cuda> --id ${cuda_id} --backend cuda --archs ${declared}
            --output ${cuda_pack_dir}
    DEPENDS twinkle_pack_cuda package.py ${pack_python}
    COMMENT "Packaging the kernel pack as ${cuda_variant}" VERBATIM)
add_custom_target(twinkle_pack_cuda_build ALL DEPENDS ${cuda_pack_dir}/metadata.json)
add_dependencies(twinkle_pack_build twinkle_pack_cuda_build)
