if(NOT CMAKE_BUILD_TYPE)  # configured without a preset
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug, ..." FORCE)
endif()
set(CMAKE_COLOR_DIAGNOSTICS ON)

# Compiler settings shared by every target of ours. Foreign headers come in as SYSTEM includes, so
# only our own code is held to these warnings.
add_library(lf_settings INTERFACE)
target_include_directories(lf_settings INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>
                                                 $<INSTALL_INTERFACE:include/loopfleet>)
target_compile_features(lf_settings INTERFACE cxx_std_23)
# Who links an installed library has warnings of their own.
target_compile_options(lf_settings INTERFACE
  "$<BUILD_INTERFACE:-Wall;-Wextra;-Wshadow;-Wnon-virtual-dtor;-Woverloaded-virtual;-Wno-missing-field-initializers>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 reports false positives of these in optimised std::string, std::variant and std::expected.
  target_compile_options(lf_settings INTERFACE
    "$<BUILD_INTERFACE:-Wno-restrict;-Wno-maybe-uninitialized;-Wno-stringop-overflow;-Wno-array-bounds>")
endif()
if(LOOPFLEET_WERROR)
  target_compile_options(lf_settings INTERFACE $<BUILD_INTERFACE:-Werror>)
endif()
if(LOOPFLEET_SANITIZE)
  # Instrumented, the compiler no longer sees that what follows a failed check is never reached.
  add_compile_options(-fsanitize=${LOOPFLEET_SANITIZE} -fno-omit-frame-pointer -Wno-return-type)
  add_link_options(-fsanitize=${LOOPFLEET_SANITIZE})
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_options(-g1)  # line tables only: a crash report names its line
endif()

find_program(CCACHE ccache)
if(CCACHE)  # by default it does not keep what was compiled with a precompiled header
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()

# lf_run_once(SOURCES...): files that parse a command line. They run once, and optimising what they
# get from CLI11's headers takes most of their time to compile.
function(lf_run_once)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -O1)
  endif()
endfunction()

# lf_unity(NAME ALONE sources): compiles ten files of a target at a time, if it has more than three. Parsing
# headers takes half of the time to compile one.
function(lf_unity name)
  cmake_parse_arguments(ARG "" "" "ALONE" ${ARGN})
  get_target_property(sources ${name} SOURCES)
  list(LENGTH sources count)
  if(count GREATER 3)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ${LOOPFLEET_UNITY} UNITY_BUILD_BATCH_SIZE 10)
  endif()
  if(ARG_ALONE)
    set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# lf_library(NAME [IN_FOLDERS | IN_PARTS] SOURCES files ALONE files LINK targets PRIVATE_LINK targets): one of our
# static libraries. A large one is compiled ten files at a time, and who links one of the ten links all. Where some
# program links a few and must not need what others link (LLVM, ZeroMQ): IN_FOLDERS compiles a folder at a time,
# IN_PARTS the files one by one. ALONE: those that link more than others of their folder, those of which a test
# program links a copy of its own, and those that have names in common with others.
function(lf_library name)
  cmake_parse_arguments(ARG "IN_FOLDERS;IN_PARTS" "" "SOURCES;ALONE;LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES} ${ARG_ALONE})
  target_link_libraries(${name} PUBLIC lf_settings ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK})
  if(ARG_IN_PARTS)
    # The standard headers take a fifth of the time to compile a file.
    target_precompile_headers(${name} PRIVATE <algorithm> <chrono> <expected> <functional> <map>
                              <memory> <optional> <ranges> <set> <string> <unordered_map> <variant>
                              <vector> <fmt/format.h>)
  else()
    lf_unity(${name} ALONE ${ARG_ALONE})
  endif()
  if(ARG_IN_FOLDERS)
    set_target_properties(${name} PROPERTIES UNITY_BUILD_MODE GROUP)
    foreach(source ${ARG_SOURCES})
      get_filename_component(folder ${source} DIRECTORY)
      string(MAKE_C_IDENTIFIER "${name}/${folder}" group)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    endforeach()
  endif()
endfunction()
