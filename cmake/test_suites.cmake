# A ctest test for each suite of a GoogleTest program, or for each test of the suites that SINGLY (a
# regular expression) names, written into a file that ctest includes:
# Those that ALONE names do not run at the same time as one another. Those that FIRST names start first: they
# take long, and should not run on while nothing else is left.
# With QUICK all have the label "quick", except for suites that LATER names.
#   cmake -D PROGRAM=path -D FOLDER=prefix -D OUT=path [-D SINGLY=regex] [-D ALONE=regex] [-D FIRST=regex]
#     [-D QUICK=TRUE [-D LATER=regex]] -P test_suites.cmake
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed
                COMMAND_ERROR_IS_FATAL ANY)
# "Suite.", and below it its tests: "  Test", a parameter's value behind a #.
string(REGEX MATCHALL "(^|\n)(  )?[A-Za-z0-9_/]+\\.?" lines "${listed}")
set(tests "")
macro(add_one name)
  string(APPEND tests "add_test(\"${FOLDER}.${name}\" \"${PROGRAM}\" \"--gtest_filter=${ARGN}\")\n"
                      "set_tests_properties(\"${FOLDER}.${name}\" PROPERTIES TIMEOUT 1200)\n")
  if(ALONE AND "${name}" MATCHES "${ALONE}")
    string(APPEND tests
           "set_tests_properties(\"${FOLDER}.${name}\" PROPERTIES RESOURCE_LOCK ${FOLDER})\n")
  endif()
  if(FIRST AND "${name}" MATCHES "${FIRST}")
    string(APPEND tests "set_tests_properties(\"${FOLDER}.${name}\" PROPERTIES COST 100)\n")
  endif()
  if(QUICK AND NOT (LATER AND "${name}" MATCHES "${LATER}"))
    string(APPEND tests "set_tests_properties(\"${FOLDER}.${name}\" PROPERTIES LABELS quick)\n")
  endif()
endmacro()
foreach(line IN LISTS lines)
  string(REPLACE "\n" "" line "${line}")
  if(line MATCHES "^([^ ]+)\\.$")
    set(suite ${CMAKE_MATCH_1})
    set(singly FALSE)
    if(SINGLY AND suite MATCHES "${SINGLY}")
      set(singly TRUE)
    else()
      add_one(${suite} "${suite}.*")
    endif()
  elseif(singly AND line MATCHES "^  (.+)$")
    add_one(${suite}.${CMAKE_MATCH_1} "${suite}.${CMAKE_MATCH_1}")
  endif()
endforeach()
file(WRITE ${OUT} "${tests}")
