# Writes a ctest test for each suite of a GoogleTest program to a file that ctest includes:
#   cmake -D PROGRAM=path -D FOLDER=prefix -D OUT=path -P test_suites.cmake
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed
                COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "(^|\n)[A-Za-z0-9_/]+\\." suites "${listed}")
set(tests "")
foreach(suite IN LISTS suites)
  string(REGEX REPLACE "[\n.]" "" suite "${suite}")
  set(name "${FOLDER}.${suite}")
  string(APPEND tests "add_test(\"${name}\" \"${PROGRAM}\" \"--gtest_filter=${suite}.*\")\n"
                      "set_tests_properties(\"${name}\" PROPERTIES TIMEOUT 600)\n")
endforeach()
file(WRITE ${OUT} "${tests}")
