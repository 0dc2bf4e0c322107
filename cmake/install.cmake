# `cmake --install build/release --prefix /usr/local`: the programs, their manual pages and completions,
# systemd units, what Prometheus and Grafana read, and the C++ library for find_package(loopfleet).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS loopfleet loopfleet-coordinator loopfleet-worker RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY monitoring/ DESTINATION ${CMAKE_INSTALL_DATADIR}/loopfleet/monitoring
        FILES_MATCHING PATTERN "*.yml" PATTERN "*.json")
install(FILES deploy/systemd/loopfleet-coordinator.service deploy/systemd/loopfleet-worker.service
        DESTINATION lib/systemd/system)  # where systemd looks, whatever the architecture
install(PROGRAMS deploy/make_keys.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/loopfleet)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")

# Manual pages and completions say what the programs say of themselves, so they are made after these.
set(LOOPFLEET_TEXTS ${CMAKE_BINARY_DIR}/texts)
set(LOOPFLEET_TEXT_FILES)
find_package(Python3 3.9 COMPONENTS Interpreter)
if(Python3_Interpreter_FOUND)
  foreach(program loopfleet loopfleet-coordinator loopfleet-worker)
    set(page ${LOOPFLEET_TEXTS}/man/${program}.1)
    add_custom_command(OUTPUT ${page}
      COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/cmake/write_man_pages.py
              --version ${PROJECT_VERSION} --out ${page} $<TARGET_FILE:${program}>
      DEPENDS ${program} ${CMAKE_SOURCE_DIR}/cmake/write_man_pages.py VERBATIM)
    list(APPEND LOOPFLEET_TEXT_FILES ${page})
  endforeach()
  install(DIRECTORY ${LOOPFLEET_TEXTS}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  loopfleet_note("manual pages" "on")
else()
  loopfleet_note("manual pages" "off: Python 3.9 not found (Debian: python3)")
endif()
function(loopfleet_completion shell file destination)
  set(script ${LOOPFLEET_TEXTS}/${shell}/${file})
  file(MAKE_DIRECTORY ${LOOPFLEET_TEXTS}/${shell})
  add_custom_command(OUTPUT ${script} COMMAND loopfleet completion ${shell} > ${script}
                     DEPENDS loopfleet VERBATIM)
  set(LOOPFLEET_TEXT_FILES ${LOOPFLEET_TEXT_FILES} ${script} PARENT_SCOPE)
  install(FILES ${script} DESTINATION ${CMAKE_INSTALL_DATADIR}/${destination})
endfunction()
loopfleet_completion(bash loopfleet bash-completion/completions)
loopfleet_completion(zsh _loopfleet zsh/site-functions)
loopfleet_completion(fish loopfleet.fish fish/vendor_completions.d)
add_custom_target(texts ALL DEPENDS ${LOOPFLEET_TEXT_FILES})

# The library. Its headers are those that need nothing foreign but fmt; what is internal to the codec
# stays here.
install(TARGETS lf_client lf_wire lf_job lf_looptree lf_base lf_schema lf_settings EXPORT loopfleet
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/loopfleet)
set_target_properties(lf_client PROPERTIES EXPORT_NAME client)
install(FILES client/client.h client/batch_writer.h client/request_id.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/loopfleet/client)
install(DIRECTORY common DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/loopfleet FILES_MATCHING PATTERN "*.h"
        PATTERN "*_codec.h" EXCLUDE PATTERN "*_impl.h" EXCLUDE PATTERN "column.h" EXCLUDE
        PATTERN "field.h" EXCLUDE PATTERN "frame.h" EXCLUDE PATTERN "settings.h" EXCLUDE)
install(EXPORT loopfleet NAMESPACE loopfleet:: FILE loopfleetTargets.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/loopfleet)
configure_package_config_file(cmake/loopfleetConfig.cmake.in ${CMAKE_BINARY_DIR}/loopfleetConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/loopfleet)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/loopfleetConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/loopfleetConfig.cmake ${CMAKE_BINARY_DIR}/loopfleetConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/loopfleet)
