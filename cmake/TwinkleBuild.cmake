# What every target shares: standard, warnings, sanitizers, ccache, and where things lie in the
# build tree (the same places as in an installed tree, so that programs find each other in both).
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# -O3 brings nothing here but false warnings of GCC 12 and time; the kernels set their own flags.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")

# twinkle_optimize_less(): for a folder, and those below it, of code that waits for LibTorch, for other programs, or for a
# person. It compiles in an eighth to a quarter less time so, and is not slower by what can be measured.
macro(twinkle_optimize_less)
    string(REPLACE "-O2" "-O1" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
endmacro()

set(TWINKLE_BIN_DIR ${CMAKE_BINARY_DIR}/bin)
set(TWINKLE_LIBEXEC_DIR ${CMAKE_BINARY_DIR}/libexec/twinkle)
set(TWINKLE_KERNELS_DIR ${CMAKE_BINARY_DIR}/lib/twinkle/kernels)
set(TWINKLE_SHARE_DIR ${CMAKE_BINARY_DIR}/share/twinkle)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
    foreach(language C CXX)
        set(CMAKE_${language}_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
            CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
    endforeach()
endif()

add_library(twinkle_options INTERFACE)
target_include_directories(twinkle_options INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
target_compile_options(twinkle_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow=local
                       -Wnon-virtual-dtor $<$<BOOL:${TWINKLE_WERROR}>:-Werror>)
target_compile_definitions(twinkle_options INTERFACE TWINKLE_VERSION="${PROJECT_VERSION}")
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
    # GCC 12 and 13 see overlaps and overflows in std::string that are not there (its bugs 105329 and 105651).
    target_compile_options(twinkle_options INTERFACE
        $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    # It takes every reference that a function with temporary arguments returns for one to them.
    target_compile_options(twinkle_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-dangling-reference>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Below a precompiled header of 600 MB, GCC would search for garbage all the time: a sixth of the compile time, for
    # a twentieth of the memory.
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=2000000>)
endif()
if(TWINKLE_SANITIZE)
    add_compile_options(-fsanitize=${TWINKLE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
    add_link_options(-fsanitize=${TWINKLE_SANITIZE})
endif()
if(TWINKLE_COVERAGE)
    add_compile_options(--coverage)
    add_link_options(--coverage)
endif()

# Most of a file's compile time is that of its headers: several files of one folder are compiled as one, which is
# three to five times as fast. So no two files of a folder may define the same name in an anonymous namespace.
# The dev preset compiles each file alone, for work on a few files.
option(TWINKLE_UNITY "Compile several files of a folder as one" ON)

# twinkle_batch(RESULT NAME PATH…): a file that includes these, which are relative to src/, so that ccache knows
# it in another checkout.
function(twinkle_batch result name)
    list(TRANSFORM ARGN REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE lines)
    string(JOIN "" content ${lines})
    file(CONFIGURE OUTPUT unity/${name}.cpp CONTENT "${content}" @ONLY)
    set(${result} ${CMAKE_CURRENT_BINARY_DIR}/unity/${name}.cpp PARENT_SCOPE)
endfunction()

# twinkle_unity(RESULT SIZE FILE…): the sources to compile: batches of up to SIZE of these, each of one folder, and
# those of a folder alike, since the largest is what others wait for.
function(twinkle_unity result size)
    if(NOT TWINKLE_UNITY)
        set(${result} ${ARGN} PARENT_SCOPE)
        return()
    endif()
    set(folders)
    foreach(source IN LISTS ARGN)
        file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR}/src ${source})
        get_filename_component(folder ${path} DIRECTORY)
        string(MAKE_C_IDENTIFIER ${folder} folder)
        list(APPEND folders ${folder})
        list(APPEND files_${folder} ${path})
    endforeach()
    list(REMOVE_DUPLICATES folders)
    set(batches)
    foreach(folder IN LISTS folders)
        set(files ${files_${folder}})
        set(number 0)
        list(LENGTH files left)
        math(EXPR batches_here "(${left} + ${size} - 1) / ${size}")
        math(EXPR each "(${left} + ${batches_here} - 1) / ${batches_here}")
        while(left GREATER 0)
            math(EXPR number "${number} + 1")
            list(SUBLIST files 0 ${each} paths)
            list(REMOVE_ITEM files ${paths})
            list(LENGTH files left)
            twinkle_batch(batch ${folder}_${number} ${paths})
            list(APPEND batches ${batch})
        endwhile()
    endforeach()
    set(${result} ${batches} PARENT_SCOPE)
endfunction()

# twinkle_view(RESULT FOLDER): an include path that shows one folder of src/ and nothing else, so that an include of
# what is no dependency of a target, by however many steps, does not compile.
function(twinkle_view result folder)
    string(MAKE_C_IDENTIFIER ${folder} id)
    set(view ${CMAKE_BINARY_DIR}/view/${id})
    get_filename_component(parent ${view}/${folder} DIRECTORY)
    file(MAKE_DIRECTORY ${parent})
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/${folder} ${view}/${folder} SYMBOLIC)
    set(${result} ${view} PARENT_SCOPE)
endfunction()

# twinkle_reuse_headers(PROGRAM OBJECTS): a program that shares the precompiled header of a library's objects needs
# their flags.
function(twinkle_reuse_headers program objects)
    target_precompile_headers(${program} REUSE_FROM ${objects})
    target_compile_options(${program} PRIVATE -fPIC)
    set_target_properties(${program} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
endfunction()

# twinkle_part(NAME [DEPENDS …]): one static library per folder of src/. Its dependencies are the
# folders below it; it sees their headers, and those of what these name in turn. tests/structure compares what is named
# with the includes and with ARCHITECTURE.md.
function(twinkle_part name)
    cmake_parse_arguments(PART "" "" "DEPENDS" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
    twinkle_unity(sources 10 ${sources})
    add_library(twinkle_${name} STATIC ${sources})
    twinkle_view(view ${name})
    target_include_directories(twinkle_${name} PUBLIC ${view})
    target_link_libraries(twinkle_${name} PUBLIC twinkle_options ${PART_DEPENDS})
    if(name STREQUAL base)
        target_precompile_headers(twinkle_base PRIVATE <nlohmann/json.hpp> <filesystem> <map> <optional> <string> <vector>)
    else()
        target_precompile_headers(twinkle_${name} REUSE_FROM twinkle_base)
    endif()
endfunction()

# In the build tree, a program or library of the runtime finds LibTorch, and what else it links outside of
# the system's folders, where they were when it was built. Not by BUILD_RPATH: CMake ends that with ":"
# where an installation will change it, and the loader takes the empty entry as the current folder.
function(twinkle_finds_torch target)
    set_target_properties(${target} PROPERTIES
        INSTALL_RPATH "$ORIGIN;${TWINKLE_TORCH_LIB}" INSTALL_RPATH_USE_LINK_PATH ON BUILD_WITH_INSTALL_RPATH ON)
endfunction()

# Installed, it names no folder of the machine that built it: LibTorch is the process's own, or found by
# the command line. Stands behind install(TARGETS …).
function(twinkle_forgets_torch folder component)
    foreach(target ${ARGN})
        install(CODE "file(RPATH_SET
            FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${folder}/$<TARGET_FILE_NAME:${target}>\"
            NEW_RPATH [=[\$ORIGIN]=])" COMPONENT ${component})
    endforeach()
endfunction()
