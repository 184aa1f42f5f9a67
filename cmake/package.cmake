# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` and the Debian package hold. The target package_files makes what the program prints of itself: man
# pages and completions.
find_package(Python3 COMPONENTS Interpreter)
include(GNUInstallDirs)
set(package_files ${PROJECT_BINARY_DIR}/package)
set(packaging ${PROJECT_SOURCE_DIR}/packaging)
set(printed ${package_files}/spanflame.1.gz ${package_files}/spanflame.yaml.5.gz ${package_files}/spanflame.bash
    ${package_files}/_spanflame ${package_files}/spanflame.fish ${package_files}/changelog.gz)
add_custom_command(OUTPUT ${printed}
    COMMAND ${Python3_EXECUTABLE} -B ${packaging}/man_pages.py $<TARGET_FILE:spanflame> ${package_files}
    COMMAND gzip -9nf ${package_files}/spanflame.1 ${package_files}/spanflame.yaml.5
    COMMAND gzip -9nc ${PROJECT_SOURCE_DIR}/CHANGELOG.md > ${package_files}/changelog.gz
    COMMAND spanflame completion bash > ${package_files}/spanflame.bash
    COMMAND spanflame completion zsh > ${package_files}/_spanflame
    COMMAND spanflame completion fish > ${package_files}/spanflame.fish
    DEPENDS spanflame ${packaging}/man_pages.py ${PROJECT_SOURCE_DIR}/CHANGELOG.md
    VERBATIM)
add_custom_target(package_files DEPENDS ${printed})

install(TARGETS spanflame RUNTIME)
install(FILES ${package_files}/spanflame.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${package_files}/spanflame.yaml.5.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
install(FILES ${package_files}/spanflame.bash DESTINATION share/bash-completion/completions RENAME spanflame)
install(FILES ${package_files}/_spanflame DESTINATION share/zsh/vendor-completions)
install(FILES ${package_files}/spanflame.fish DESTINATION share/fish/vendor_completions.d)
install(FILES ${packaging}/copyright ${package_files}/changelog.gz DESTINATION share/doc/spanflame)
install(FILES ${PROJECT_SOURCE_DIR}/config/spanflame.service DESTINATION lib/systemd/system)
install(FILES ${PROJECT_SOURCE_DIR}/config/otel-collector-config.yaml DESTINATION /etc/spanflame RENAME config.yaml)
install(FILES ${packaging}/default DESTINATION /etc/default RENAME spanflame)

set(CPACK_GENERATOR DEB)
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_NAME spanflame)
set(CPACK_PACKAGE_VENDOR spanflame)
set(CPACK_PACKAGE_CONTACT "The spanflame authors <spanflame@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "OpenTelemetry pipeline daemon")
set(CPACK_PACKAGE_DESCRIPTION "Receives traces, metrics, logs and profiles, batches and edits them, and
exports them. Takes configurations of the OpenTelemetry Collector, and links
profiles to traces.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS passwd)
# Loaded when a configuration or a request needs them (docs/operations.md).
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS
    "ca-certificates, libcrypt1, libcurl4, liblz4-1, libsnappy1v5, libssl3, libzstd1")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${packaging}/postinst ${packaging}/prerm ${packaging}/postrm ${packaging}/conffiles)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
