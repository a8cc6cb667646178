# What is installed where. The programs find each other relative to their own place, so an installed tree
# may be moved; that is why the folders below the prefix are fixed, and the same as in the build tree.
# Components: tool (the command line), runtime (for one LibTorch), dev (for C++ and C programs), and here (where
# LibTorch is on this machine, which packages leave out).
install(TARGETS twinkle RUNTIME DESTINATION bin COMPONENT tool)
# Folders of documentation are named after Debian's packages, and each has what Debian wants of the licence.
set(doc share/doc/twinkle-kernels)
file(WRITE ${CMAKE_BINARY_DIR}/packaged/copyright
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
Copyright: the twinkle authors
License: Apache-2.0
 On Debian systems the text of the licence is in /usr/share/common-licenses/Apache-2.0.
")
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${doc} COMPONENT tool)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${doc} COMPONENT tool)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${doc} COMPONENT dev)
install(FILES ${CMAKE_BINARY_DIR}/packaged/copyright DESTINATION ${doc} COMPONENT tool)
install(FILES ${CMAKE_BINARY_DIR}/packaged/copyright DESTINATION ${doc}-dev COMPONENT dev)

file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/man/*.1)
install(FILES ${pages} DESTINATION share/man/man1 COMPONENT tool)
install(FILES ${PROJECT_SOURCE_DIR}/completions/twinkle.bash
        DESTINATION share/bash-completion/completions RENAME twinkle COMPONENT tool)
install(FILES ${PROJECT_SOURCE_DIR}/completions/_twinkle DESTINATION share/zsh/site-functions COMPONENT tool)
install(FILES ${PROJECT_SOURCE_DIR}/completions/twinkle.fish
        DESTINATION share/fish/vendor_completions.d COMPONENT tool)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/kernels/presets DESTINATION share/twinkle COMPONENT tool)

install(TARGETS twinkle_client LIBRARY DESTINATION lib COMPONENT tool NAMELINK_COMPONENT dev)
# twinkle/hub.h needs no LibTorch; the other headers come with the runtime.
foreach(header hub api error)
    install(FILES ${PROJECT_SOURCE_DIR}/include/twinkle/${header}.h DESTINATION include/twinkle COMPONENT dev)
endforeach()
# find_package(twinkle)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/twinkleConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/twinkleConfig.cmake ${CMAKE_BINARY_DIR}/twinkleConfigVersion.cmake
        DESTINATION lib/cmake/twinkle COMPONENT dev)

if(TWINKLE_RUNTIME)
    set(runtime libexec/twinkle/${TWINKLE_TORCH_TAG})
    install(FILES ${CMAKE_BINARY_DIR}/packaged/copyright DESTINATION ${doc}-${TWINKLE_TORCH_TAG} COMPONENT runtime)
    install(TARGETS twinkle_runtime twinkle_python_stub LIBRARY DESTINATION ${runtime} COMPONENT runtime)
    if(TARGET twinkle_cuda)
        install(TARGETS twinkle_cuda LIBRARY DESTINATION ${runtime} COMPONENT runtime)
        twinkle_forgets_torch(${runtime} runtime twinkle_cuda)
    endif()
    install(TARGETS twinkle_worker RUNTIME DESTINATION ${runtime} COMPONENT runtime)
    twinkle_forgets_torch(${runtime} runtime twinkle_runtime twinkle_worker)
    install(FILES ${CMAKE_BINARY_DIR}/packaged/runtime.json DESTINATION ${runtime} COMPONENT runtime)
    install(FILES ${TWINKLE_RUNTIME_DIR}/runtime.json DESTINATION ${runtime} COMPONENT here)
    install(TARGETS twinkle_preload LIBRARY DESTINATION lib COMPONENT runtime)
    # The digests of a kernel's metadata are over its files: they are copied as they are.
    install(DIRECTORY ${TWINKLE_KERNELS_DIR} DESTINATION lib/twinkle USE_SOURCE_PERMISSIONS COMPONENT runtime)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/twinkle DESTINATION include COMPONENT dev)
else()
    # kernels/ is not built then; but resolve, for another machine, still binds layers by the presets.
    file(GLOB presets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/presets/*.toml
         ${PROJECT_SOURCE_DIR}/kernels/presets/*.py)
    foreach(preset ${presets})
        get_filename_component(name ${preset} NAME)
        configure_file(${preset} ${TWINKLE_SHARE_DIR}/presets/${name} COPYONLY)
    endforeach()
endif()
