# What `cmake --install` puts where, in two components:
#   programs   the command and the daemons, units for systemd, scripts and manifests
#   library    the C++ client and tensors for find_package(loopfleet): loopfleet::client, loopfleet::tensor
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS loopfleet loopfleet-coordinator loopfleet-mirror loopfleet-worker COMPONENT programs)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT programs)
install(PROGRAMS deploy/make_keys.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/loopfleet COMPONENT programs)
install(DIRECTORY deploy/llvm deploy/slurm deploy/kubernetes deploy/nftables
        DESTINATION ${CMAKE_INSTALL_DATADIR}/loopfleet COMPONENT programs USE_SOURCE_PERMISSIONS)
install(FILES client/javascript/loopfleet.mjs DESTINATION ${CMAKE_INSTALL_DATADIR}/loopfleet/javascript COMPONENT programs)
install(DIRECTORY monitoring/rules monitoring/targets monitoring/grafana
        DESTINATION ${CMAKE_INSTALL_DATADIR}/loopfleet/monitoring COMPONENT programs PATTERN "*.in" EXCLUDE)
# Grafana is told the folder of the dashboards, which `cmake --install --prefix` may choose.
set(provider provisioning/dashboards/loopfleet.yml)
install(CODE "
  get_filename_component(LOOPFLEET_GRAFANA \"${CMAKE_INSTALL_DATADIR}/loopfleet/monitoring/grafana\"
                         ABSOLUTE BASE_DIR \"\${CMAKE_INSTALL_PREFIX}\")
  configure_file(\"${CMAKE_SOURCE_DIR}/monitoring/grafana/${provider}.in\"
                 \"\$ENV{DESTDIR}\${LOOPFLEET_GRAFANA}/${provider}\" @ONLY)"
  COMPONENT programs)
install(FILES monitoring/prometheus.yml monitoring/prometheus-file_sd.yml monitoring/prometheus-kubernetes.yml
              monitoring/alertmanager.yml
        DESTINATION ${CMAKE_INSTALL_DATADIR}/loopfleet/monitoring COMPONENT programs)
# Units name the programs by their paths.
foreach(unit loopfleet-coordinator loopfleet-worker)
  configure_file(deploy/systemd/${unit}.service.in ${CMAKE_BINARY_DIR}/systemd/${unit}.service @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/systemd/${unit}.service
          DESTINATION lib/systemd/system COMPONENT programs)
endforeach()

set(library_dir ${CMAKE_INSTALL_LIBDIR}/loopfleet)  # liblf_base.a is no name for /usr/lib
set(LOOPFLEET_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/loopfleet)
set_target_properties(lf_client PROPERTIES EXPORT_NAME client)
install(TARGETS lf_client lf_tensor lf_tensor_kernels lf_kernel lf_wire lf_schema lf_job lf_llvm_passes lf_looptree lf_base lf_settings
        EXPORT loopfleet ARCHIVE DESTINATION ${library_dir} COMPONENT library)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)
install(DIRECTORY client common kernel tensor DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/loopfleet COMPONENT library
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

# Manual pages and completions: what the programs say of themselves, so they are made after these.
set(texts ${CMAKE_BINARY_DIR}/texts)
set(text_files)
find_package(Python3 3.9 COMPONENTS Interpreter)
if(Python3_Interpreter_FOUND)
  foreach(program loopfleet loopfleet-coordinator loopfleet-mirror loopfleet-worker)
    set(page ${texts}/man/${program}.1)
    add_custom_command(OUTPUT ${page}
      COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/cmake/write_man_pages.py
              --version ${PROJECT_VERSION} --out ${page} $<TARGET_FILE:${program}>
      DEPENDS ${program} ${CMAKE_SOURCE_DIR}/cmake/write_man_pages.py VERBATIM)
    list(APPEND text_files ${page})
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT programs)
  endforeach()
  loopfleet_note("manual pages" "on")
else()
  loopfleet_note("manual pages" "off: Python 3.9 not found (Debian: python3)")
endif()
function(loopfleet_completion shell file destination)
  set(script ${texts}/${shell}/${file})
  file(MAKE_DIRECTORY ${texts}/${shell})
  add_custom_command(OUTPUT ${script} COMMAND loopfleet completion ${shell} > ${script}
                     DEPENDS loopfleet VERBATIM)
  set(text_files ${text_files} ${script} PARENT_SCOPE)
  install(FILES ${script} DESTINATION ${CMAKE_INSTALL_DATADIR}/${destination} COMPONENT programs)
endfunction()
loopfleet_completion(bash loopfleet bash-completion/completions)
loopfleet_completion(zsh _loopfleet zsh/site-functions)
loopfleet_completion(fish loopfleet.fish fish/vendor_completions.d)
add_custom_target(texts ALL DEPENDS ${text_files})

if(Python3_Interpreter_FOUND)  # Debian's packages have manual pages
  include(debian_packages)
endif()
