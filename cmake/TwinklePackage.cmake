# What `cpack` makes (script/package calls it): a .tar.gz that runs wherever it is unpacked, and Debian packages.
# Debian has another `twinkle`, so they are called twinkle-kernels.
set(CPACK_PACKAGE_NAME twinkle)
set(CPACK_PACKAGE_VENDOR "the twinkle authors")
set(CPACK_PACKAGE_CONTACT "the twinkle authors <twinkle@invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/TwinklePackageKinds.cmake)
set(CPACK_COMPONENTS_ALL tool dev)
set(_tag "${CMAKE_SYSTEM_PROCESSOR}-linux")
if(TWINKLE_RUNTIME)
    list(APPEND CPACK_COMPONENTS_ALL runtime)
    set(_tag "${TWINKLE_TORCH_TAG}-${_tag}")
endif()
set(CPACK_PACKAGE_FILE_NAME twinkle-${PROJECT_VERSION}-${_tag})

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TOOL_PACKAGE_NAME twinkle-kernels)
set(CPACK_DEBIAN_TOOL_PACKAGE_SHLIBDEPS ON)
# Opened when it is needed, so that no header of a library says it.
set(CPACK_DEBIAN_TOOL_PACKAGE_DEPENDS "libcurl4")
set(CPACK_DEBIAN_TOOL_PACKAGE_RECOMMENDS "ca-certificates")
set(CPACK_COMPONENT_TOOL_DESCRIPTION "Fetches, verifies, locks and resolves kernels of the Kernel Hub.
The command line, its manual pages and completions, and the library of
twinkle/hub.h.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME twinkle-kernels-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "twinkle-kernels (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers, CMake package and examples, for C++ and C programs.")
if(TWINKLE_RUNTIME)
    string(TOLOWER "twinkle-kernels-${TWINKLE_TORCH_TAG}" _runtime)
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${_runtime})
    # LibTorch comes from pip or an archive, no package has it: the rest is what the command line needs too.
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "twinkle-kernels (= ${PROJECT_VERSION})")
    set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "Runtime for LibTorch ${TWINKLE_TORCH_VERSION} (${TWINKLE_TORCH_BACKEND}), and the bundled kernels.
LibTorch itself is not in it: pip install torch, or an unpacked libtorch
(TWINKLE_TORCH=DIR).")
endif()
include(CPack)
