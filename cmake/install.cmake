# What `cmake --install` puts where, in two components:
#   programs   the command and the daemons, units for systemd, scripts and manifests
#   library    the C++ client for find_package(loopfleet): loopfleet::client
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS loopfleet loopfleet-coordinator loopfleet-worker COMPONENT programs)
install(PROGRAMS deploy/make_keys.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/loopfleet COMPONENT programs)
install(DIRECTORY deploy/slurm deploy/kubernetes monitoring/rules
        DESTINATION ${CMAKE_INSTALL_DATADIR}/loopfleet COMPONENT programs USE_SOURCE_PERMISSIONS)
install(FILES monitoring/prometheus.yml DESTINATION ${CMAKE_INSTALL_DATADIR}/loopfleet COMPONENT programs)
# Units name the programs by their paths.
foreach(unit loopfleet-coordinator loopfleet-worker)
  configure_file(deploy/systemd/${unit}.service.in ${CMAKE_BINARY_DIR}/systemd/${unit}.service @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/systemd/${unit}.service
          DESTINATION lib/systemd/system COMPONENT programs)
endforeach()

set(library_dir ${CMAKE_INSTALL_LIBDIR}/loopfleet)  # liblf_base.a is no name for /usr/lib
set(LOOPFLEET_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/loopfleet)
set_target_properties(lf_client PROPERTIES EXPORT_NAME client)
install(TARGETS lf_client lf_wire lf_schema lf_job lf_looptree lf_base lf_settings
        EXPORT loopfleet ARCHIVE DESTINATION ${library_dir} COMPONENT library)
install(DIRECTORY client common DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/loopfleet COMPONENT library
        FILES_MATCHING PATTERN "*.h" PATTERN "cli" EXCLUDE PATTERN "python" EXCLUDE)
install(EXPORT loopfleet NAMESPACE loopfleet:: FILE loopfleet-targets.cmake
        DESTINATION ${LOOPFLEET_PACKAGE_DIR} COMPONENT library)
configure_package_config_file(cmake/loopfleet-config.cmake.in ${CMAKE_BINARY_DIR}/loopfleet-config.cmake
                              INSTALL_DESTINATION ${LOOPFLEET_PACKAGE_DIR})
# Until 1.0 a minor version may break things.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/loopfleet-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/loopfleet-config.cmake ${CMAKE_BINARY_DIR}/loopfleet-config-version.cmake
        DESTINATION ${LOOPFLEET_PACKAGE_DIR} COMPONENT library)
