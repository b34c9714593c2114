# `cmake --install`: the program, what bash completes, a unit for systemd and its user, an example of a configuration
# file, the docs. `cpack` in the build folder of a release makes a Debian package of them.
include(GNUInstallDirs)

set(packaging ${PROJECT_SOURCE_DIR}/packaging)
install(TARGETS sluice)
install(FILES ${packaging}/sluice.bash RENAME sluice
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${packaging}/sluice.sysusers RENAME sluice.conf DESTINATION lib/sysusers.d)
install(FILES ${packaging}/sluice.conf DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES README.md CHANGELOG.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
# The unit names the program by its path, which is known only now.
install(CODE "
  file(READ ${PROJECT_SOURCE_DIR}/docs/sluice.service unit)
  string(REPLACE /usr/local/bin/ \${CMAKE_INSTALL_PREFIX}/bin/ unit \"\${unit}\")
  file(WRITE ${PROJECT_BINARY_DIR}/sluice.service \"\${unit}\")")
install(FILES ${PROJECT_BINARY_DIR}/sluice.service DESTINATION lib/systemd/system)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR})
set(CPACK_PACKAGE_CONTACT "the authors of Sluice <sluice@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains and applies models with SQL, in front of SQLite or PostgreSQL")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION database)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The program loads libxgboost itself, where dpkg-shlibdeps does not see it.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libxgboost0, ca-certificates")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3-torch")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${packaging}/postinst)
include(CPack)
