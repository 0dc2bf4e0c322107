# nanobind for the Python module: found by the interpreter that the module is for. The tests' environment
# (tests/python/make_environment.sh) comes before the system's, if it is there.
set(LOOPFLEET_PYTHON OFF)
set(environment ${CMAKE_SOURCE_DIR}/build/python/bin/python)
if(NOT DEFINED Python_EXECUTABLE AND EXISTS ${environment})
  set(Python_EXECUTABLE ${environment} CACHE FILEPATH "The interpreter that the Python module is for")
endif()
find_package(Python 3.10 COMPONENTS Interpreter Development.Module)
# An interpreter has no sanitizer. GCC's for addresses can be preloaded (LOOPFLEET_PRELOAD).
set(LOOPFLEET_PRELOAD "")
if(LOOPFLEET_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  foreach(library libasan.so libubsan.so libstdc++.so)  # the last, so that exceptions are seen to be thrown
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${library}
                    OUTPUT_VARIABLE file OUTPUT_STRIP_TRAILING_WHITESPACE)
    list(APPEND LOOPFLEET_PRELOAD ${file})
  endforeach()
  list(JOIN LOOPFLEET_PRELOAD ":" LOOPFLEET_PRELOAD)
endif()
if(Python_Development.Module_FOUND AND (NOT LOOPFLEET_SANITIZE OR LOOPFLEET_PRELOAD))
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
                  OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(nanobind_ROOT)
    find_package(nanobind CONFIG REQUIRED HINTS ${nanobind_ROOT})
    set(LOOPFLEET_PYTHON ON)
    loopfleet_note("Python" "on, ${Python_VERSION} (${Python_EXECUTABLE}), nanobind ${nanobind_VERSION}")
  endif()
endif()
if(NOT LOOPFLEET_PYTHON)
  if(LOOPFLEET_ONLY_PYTHON)
    message(FATAL_ERROR "the Python module needs Python's headers (Debian: python3-dev) and nanobind (PyPI)")
  endif()
  loopfleet_note("Python" "off: no nanobind for ${Python_EXECUTABLE} (tests/python/make_environment.sh installs it)")
endif()
