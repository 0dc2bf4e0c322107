# What the daemons and the command need besides: not part of the Python package.
find_package(mimalloc 2.0 REQUIRED)
find_package(prometheus-cpp REQUIRED CONFIG COMPONENTS core)
find_package(LLVM 19.1 REQUIRED CONFIG HINTS /usr/lib/llvm-19)
pkg_check_modules(pqxx REQUIRED IMPORTED_TARGET libpqxx)
pkg_check_modules(seccomp REQUIRED IMPORTED_TARGET libseccomp)
find_path(CIVETWEB_INCLUDE_DIR civetweb.h REQUIRED)
find_library(CIVETWEB_LIBRARY civetweb REQUIRED)
add_library(civetweb UNKNOWN IMPORTED)
set_target_properties(civetweb PROPERTIES IMPORTED_LOCATION ${CIVETWEB_LIBRARY}
                      INTERFACE_INCLUDE_DIRECTORIES ${CIVETWEB_INCLUDE_DIR})

add_library(lf_llvm INTERFACE)
target_include_directories(lf_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
if(TARGET LLVM)
  target_link_libraries(lf_llvm INTERFACE LLVM)  # the shared libLLVM
else()
  llvm_map_components_to_libnames(LLVM_LIBS core orcjit native passes irreader debuginfodwarf AllTargetsCodeGens
                                  AllTargetsDescs AllTargetsInfos)
  target_link_libraries(lf_llvm INTERFACE ${LLVM_LIBS})
endif()

loopfleet_note("PostgreSQL (mirror)" "on, libpqxx ${pqxx_VERSION}")
loopfleet_note("mimalloc (coordinator)" "on, ${mimalloc_VERSION}")
loopfleet_note("metrics" "on, prometheus-cpp over civetweb")
loopfleet_note("LLVM (CPU worker)" "on, ${LLVM_PACKAGE_VERSION}")
