# What is installed where. The programs find each other relative to their own place, so an installed tree
# may be moved; that is why the folders below the prefix are fixed, and the same as in the build tree.
install(TARGETS twinkle RUNTIME DESTINATION bin)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/twinkle)

file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/man/*.1)
install(FILES ${pages} DESTINATION share/man/man1)
install(FILES ${PROJECT_SOURCE_DIR}/completions/twinkle.bash
        DESTINATION share/bash-completion/completions RENAME twinkle)
install(FILES ${PROJECT_SOURCE_DIR}/completions/_twinkle DESTINATION share/zsh/site-functions)
install(FILES ${PROJECT_SOURCE_DIR}/completions/twinkle.fish DESTINATION share/fish/vendor_completions.d)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/kernels/presets DESTINATION share/twinkle)

# twinkle/hub.h needs no LibTorch; the other headers come with the runtime.
install(TARGETS twinkle_client LIBRARY DESTINATION lib)
foreach(header hub api error)
    install(FILES ${PROJECT_SOURCE_DIR}/include/twinkle/${header}.h DESTINATION include/twinkle)
endforeach()

if(TWINKLE_RUNTIME)
    set(runtime libexec/twinkle/${TWINKLE_TORCH_TAG})
    install(TARGETS twinkle_runtime twinkle_python_stub LIBRARY DESTINATION ${runtime})
    install(TARGETS twinkle_worker RUNTIME DESTINATION ${runtime})
    install(FILES ${TWINKLE_RUNTIME_DIR}/runtime.json DESTINATION ${runtime})
    install(TARGETS twinkle_preload LIBRARY DESTINATION lib)
    # The digests of a kernel's metadata are over its files: they are copied as they are.
    install(DIRECTORY ${TWINKLE_KERNELS_DIR} DESTINATION lib/twinkle USE_SOURCE_PERMISSIONS)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/twinkle DESTINATION include)
else()
    # kernels/ is not built then; but resolve, for another machine, still binds layers by the presets.
    file(GLOB presets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/presets/*.toml)
    foreach(preset ${presets})
        get_filename_component(name ${preset} NAME)
        configure_file(${preset} ${TWINKLE_SHARE_DIR}/presets/${name} COPYONLY)
    endforeach()
endif()
