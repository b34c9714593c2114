# Checks that locks are held where the annotations of base/mutex.h require it, which only clang can do: the
# target `thread_safety` compiles every file that uses locks, or whose header does, only to be checked.
find_program(SLUICE_CLANG NAMES clang++-14 clang++)
if(SLUICE_CLANG)
  add_custom_target(thread_safety)
endif()

# sluice_thread_safety(library sources...)
function(sluice_thread_safety library)
  set(groups)
  foreach(source ${ARGN})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    cmake_path(REMOVE_EXTENSION source LAST_ONLY OUTPUT_VARIABLE stem)
    set(locks)
    foreach(file ${source} ${stem}.h ${stem}_internal.h)
      if(EXISTS ${file})
        file(STRINGS ${file} found LIMIT_COUNT 1 REGEX "base/mutex\\.h|GUARDED_BY|MutexLock")
        list(APPEND locks ${found})
      endif()
    endforeach()
    if(locks)
      cmake_path(GET source PARENT_PATH folder)
      cmake_path(GET folder FILENAME group)
      list(APPEND groups ${group})
      list(APPEND files_${group} ${source})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES groups)
  set(includes "$<TARGET_PROPERTY:${library},INCLUDE_DIRECTORIES>")
  set(includes "$<REMOVE_DUPLICATES:$<FILTER:${includes},EXCLUDE,^/usr/include$>>")
  set(checked)
  foreach(group ${groups})
    # Several files at a time, as in a unity build.
    set(all ${CMAKE_CURRENT_BINARY_DIR}/thread_safety/${group}.cc)
    list(TRANSFORM files_${group} REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE lines)
    string(JOIN "" text ${lines})
    file(CONFIGURE OUTPUT ${all} CONTENT "${text}" @ONLY)
    add_custom_command(
      OUTPUT ${all}.checked
      COMMAND
        ${SLUICE_CLANG} -fsyntax-only -std=c++20 -pthread -Wno-everything -Wthread-safety
        -Werror=thread-safety "-D$<JOIN:$<TARGET_PROPERTY:${library},COMPILE_DEFINITIONS>,;-D>"
        "-I$<JOIN:${includes},;-I>" ${all}
      COMMAND ${CMAKE_COMMAND} -E touch ${all}.checked
      DEPENDS ${library} ${all} ${files_${group}}
      COMMENT "Checking the locks of ${library}, ${group}"
      COMMAND_EXPAND_LISTS VERBATIM)
    list(APPEND checked ${all}.checked)
  endforeach()
  if(checked)
    add_custom_target(${library}_thread_safety DEPENDS ${checked})
    add_dependencies(thread_safety ${library}_thread_safety)
  endif()
endfunction()
