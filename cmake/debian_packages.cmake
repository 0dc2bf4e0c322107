# Three Debian packages by CPack, from the components below: `cpack --config build/release/CPackConfig.cmake`, after
# the target `debian`. deploy/release.sh does both. Texts and maintainer scripts are in deploy/debian.
set(LOOPFLEET_MAINTAINER "loopfleet maintainers <maintainers@loopfleet.invalid>")

# The changelog's date is the commit's, so that one commit gives one package.
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND git -C ${CMAKE_SOURCE_DIR} log -1 --format=%ct
                  OUTPUT_VARIABLE commit_time OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(commit_time)
    set(ENV{SOURCE_DATE_EPOCH} ${commit_time})
  endif()
endif()
string(TIMESTAMP LOOPFLEET_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)

set(debian ${CMAKE_BINARY_DIR}/debian)
set(debian_files)

# A file in gzip's form, as Debian wants its documents.
function(loopfleet_gzip from to)
  add_custom_command(OUTPUT ${to} COMMAND gzip -9n < ${from} > ${to} DEPENDS ${from} VERBATIM)
  set(debian_files ${debian_files} ${to} PARENT_SCOPE)
endfunction()

# loopfleet_debian(COMPONENT files... DESTINATION folder): files of one of the packages.
function(loopfleet_debian component)
  cmake_parse_arguments(ARG "PROGRAMS" "DESTINATION" "FILES" ${ARGN})
  if(ARG_PROGRAMS)
    install(PROGRAMS ${ARG_FILES} DESTINATION ${ARG_DESTINATION} COMPONENT ${component} EXCLUDE_FROM_ALL)
  else()
    install(FILES ${ARG_FILES} DESTINATION ${ARG_DESTINATION} COMPONENT ${component} EXCLUDE_FROM_ALL)
  endif()
endfunction()

file(MAKE_DIRECTORY ${debian}/man)
configure_file(deploy/debian/changelog.in ${debian}/changelog @ONLY)
loopfleet_gzip(${debian}/changelog ${debian}/changelog.gz)
loopfleet_gzip(${CMAKE_SOURCE_DIR}/CHANGELOG.md ${debian}/CHANGELOG.md.gz)

# What each package has: a program, its manual page, and the documents that Debian asks for.
foreach(component client coordinator worker)
  if(component STREQUAL "client")
    set(name loopfleet)
  else()
    set(name loopfleet-${component})
  endif()
  install(TARGETS ${name} DESTINATION usr/bin COMPONENT ${component} EXCLUDE_FROM_ALL)
  loopfleet_gzip(${texts}/man/${name}.1 ${debian}/man/${name}.1.gz)
  loopfleet_debian(${component} FILES ${debian}/man/${name}.1.gz DESTINATION usr/share/man/man1)
  loopfleet_debian(${component}
    FILES ${CMAKE_SOURCE_DIR}/deploy/debian/copyright ${debian}/changelog.gz ${debian}/CHANGELOG.md.gz
    DESTINATION usr/share/doc/${name})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
endforeach()

install(TARGETS loopfleet-mirror DESTINATION usr/bin COMPONENT coordinator EXCLUDE_FROM_ALL)
loopfleet_gzip(${texts}/man/loopfleet-mirror.1 ${debian}/man/loopfleet-mirror.1.gz)
loopfleet_debian(coordinator FILES ${debian}/man/loopfleet-mirror.1.gz DESTINATION usr/share/man/man1)

# The daemons: units with /usr/bin, settings and keys in /etc/loopfleet, maintainer scripts.
set(bindir_of_cmake_install ${CMAKE_INSTALL_FULL_BINDIR})
set(CMAKE_INSTALL_FULL_BINDIR /usr/bin)
foreach(DAEMON coordinator worker)
  set(own ${debian}/${DAEMON})
  configure_file(deploy/systemd/loopfleet-${DAEMON}.service.in ${own}/loopfleet-${DAEMON}.service @ONLY)
  loopfleet_debian(${DAEMON} FILES ${own}/loopfleet-${DAEMON}.service DESTINATION lib/systemd/system)
  loopfleet_debian(${DAEMON} FILES ${CMAKE_SOURCE_DIR}/deploy/debian/${DAEMON}.env DESTINATION etc/loopfleet)
  install(DIRECTORY DESTINATION etc/loopfleet/${DAEMON} COMPONENT ${DAEMON} EXCLUDE_FROM_ALL
          DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  file(WRITE ${own}/conffiles "/etc/loopfleet/${DAEMON}.env\n")
  set(scripts)
  foreach(script postinst prerm postrm)
    configure_file(deploy/debian/${script}.in ${own}/${script} @ONLY
      FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    list(APPEND scripts ${own}/${script})
  endforeach()
  string(TOUPPER ${DAEMON} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${scripts} ${own}/conffiles)
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
endforeach()
set(CMAKE_INSTALL_FULL_BINDIR ${bindir_of_cmake_install})
foreach(role clients workers admins)
  install(DIRECTORY DESTINATION etc/loopfleet/coordinator/authorized/${role} COMPONENT coordinator EXCLUDE_FROM_ALL
          DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endforeach()

# The command's completions, where Debian's shells look, and the scripts of an operator.
loopfleet_debian(client FILES ${texts}/bash/loopfleet DESTINATION usr/share/bash-completion/completions)
loopfleet_debian(client FILES ${texts}/zsh/_loopfleet DESTINATION usr/share/zsh/vendor-completions)
loopfleet_debian(client FILES ${texts}/fish/loopfleet.fish DESTINATION usr/share/fish/vendor_completions.d)
loopfleet_debian(client PROGRAMS FILES ${CMAKE_SOURCE_DIR}/deploy/make_keys.sh DESTINATION usr/share/loopfleet)
loopfleet_debian(client FILES ${CMAKE_SOURCE_DIR}/client/javascript/loopfleet.mjs DESTINATION usr/share/loopfleet/javascript)
install(DIRECTORY deploy/slurm deploy/kubernetes deploy/nftables DESTINATION usr/share/loopfleet COMPONENT client EXCLUDE_FROM_ALL
        USE_SOURCE_PERMISSIONS)
install(DIRECTORY deploy/llvm DESTINATION usr/share/loopfleet COMPONENT worker EXCLUDE_FROM_ALL USE_SOURCE_PERMISSIONS)
install(DIRECTORY monitoring/rules monitoring/targets monitoring/grafana
        DESTINATION usr/share/loopfleet/monitoring COMPONENT coordinator EXCLUDE_FROM_ALL PATTERN "*.in" EXCLUDE)
set(LOOPFLEET_GRAFANA /usr/share/loopfleet/monitoring/grafana)
configure_file(monitoring/grafana/${provider}.in ${debian}/grafana/loopfleet.yml @ONLY)
loopfleet_debian(coordinator FILES ${debian}/grafana/loopfleet.yml
                 DESTINATION usr/share/loopfleet/monitoring/grafana/provisioning/dashboards)
loopfleet_debian(coordinator
  FILES ${CMAKE_SOURCE_DIR}/monitoring/prometheus.yml ${CMAKE_SOURCE_DIR}/monitoring/prometheus-file_sd.yml
        ${CMAKE_SOURCE_DIR}/monitoring/prometheus-kubernetes.yml ${CMAKE_SOURCE_DIR}/monitoring/alertmanager.yml
  DESTINATION usr/share/loopfleet/monitoring)

add_custom_target(debian_texts ALL DEPENDS texts ${debian_files})
add_custom_target(debian DEPENDS debian_texts loopfleet loopfleet-coordinator loopfleet-mirror loopfleet-worker)

set(CPACK_GENERATOR DEB)
set(CPACK_OUTPUT_FILE_PREFIX ${debian}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /)  # the destinations above begin with usr, etc and lib
set(CPACK_STRIP_FILES TRUE)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL client coordinator worker)
set(CPACK_DEB_COMPONENT_INSTALL TRUE)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${LOOPFLEET_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS TRUE)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_CLIENT_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COORDINATOR_PACKAGE_SECTION science)
set(CPACK_DEBIAN_WORKER_PACKAGE_SECTION science)

set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # the first line of each is its own
set(CPACK_COMPONENT_CLIENT_DESCRIPTION "command of a cluster that measures loop schedules
Sends (benchmark, actions) jobs to a loopfleet cluster and prints verified
GFLOP/s with a grade of trust; searches for schedules, runs campaigns, exports
data sets, and shows and repairs the state of a fleet.")
set(CPACK_COMPONENT_COORDINATOR_DESCRIPTION "coordinator of a cluster that measures loop schedules
Keeps batches of jobs on disk and hands them to loopfleet-worker daemons.
Outcomes are stored in SQLite and reach the client as each one finishes. One
coordinator serves a fleet; it has a web page and metrics for Prometheus.")
set(CPACK_COMPONENT_WORKER_DESCRIPTION "worker of a cluster that measures loop schedules
Rebuilds the loop tree of a job, compiles it with LLVM, verifies its output
and times it in a sandbox. One worker serves a host.

Jobs that apply LLVM passes need the recommended packages: they generate and
compile the programs to which the passes are applied.")
set(CPACK_DEBIAN_CLIENT_PACKAGE_SUGGESTS "loopfleet-coordinator, loopfleet-worker")
set(CPACK_DEBIAN_COORDINATOR_PACKAGE_DEPENDS "adduser, loopfleet (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_WORKER_PACKAGE_DEPENDS "adduser")
set(CPACK_DEBIAN_WORKER_PACKAGE_RECOMMENDS "loopfleet, clang-19, csmith, libcsmith-dev, llvm-19")
set(CPACK_DEBIAN_WORKER_PACKAGE_SUGGESTS "python3")  # share/loopfleet/llvm/build_debian.py
include(CPack)
