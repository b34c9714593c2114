# The standard headers, fmt's and protobuf's, precompiled once for all libraries.
if(SLUICE_PCH)
  file(WRITE ${PROJECT_BINARY_DIR}/pch.cc "")
  add_library(pch OBJECT ${PROJECT_BINARY_DIR}/pch.cc)
  target_link_libraries(pch PRIVATE sluice_flags fmt::fmt protobuf::libprotobuf)
  target_precompile_headers(pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/pch.h)
endif()

set(quick_compile $<$<CONFIG:Release>:-O1>)

# Where several files are compiled at a time, they are of one folder, and at most so many: a third of
# what a group takes to be read is the headers that its files share.
# sluice_unity_groups(most sources...)
function(sluice_unity_groups most)
  foreach(source ${ARGN})
    cmake_path(GET source PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "files_${folder}" files)
    list(LENGTH ${files} count)
    math(EXPR group "${count} / ${most}")
    list(APPEND ${files} ${source})
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${files}_${group}")
  endforeach()
endfunction()

# sluice_library(name SOURCES a.cc ... [COLD regex] [DEPS public house targets] [PRIVATE_DEPS libraries])
# COLD: in the files that match, nothing takes a user's time; shipped builds optimise them less, which takes a third
# less of the compiler's.
function(sluice_library name)
  cmake_parse_arguments(ARG "" "COLD" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  set(hot ${ARG_SOURCES})
  set(parts ${name})
  if(ARG_COLD)
    set(cold ${ARG_SOURCES})
    list(FILTER cold INCLUDE REGEX "${ARG_COLD}")
    list(REMOVE_ITEM hot ${cold})
    add_library(${name}_cold OBJECT ${cold})
    target_compile_options(${name}_cold PRIVATE ${quick_compile})
    list(APPEND hot $<TARGET_OBJECTS:${name}_cold>)
    list(APPEND parts ${name}_cold)
  endif()
  add_library(${name} STATIC ${hot})
  sluice_unity_groups(20 ${ARG_SOURCES})
  foreach(part ${parts})
    set_target_properties(${part} PROPERTIES UNITY_BUILD_MODE GROUP LINKER_LANGUAGE CXX)
    target_link_libraries(${part} PUBLIC sluice_flags ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
    if(SLUICE_PCH AND NOT name STREQUAL "base")  # spdlog's definitions in base would not match
      target_precompile_headers(${part} REUSE_FROM pch)
    endif()
  endforeach()
  if(SLUICE_CLANG)
    sluice_thread_safety(${name} ${ARG_SOURCES})
  endif()
endfunction()

add_custom_target(generated_code)

# sluice_proto(name file.proto [GRPC] [DEPS other proto targets]): a library of the generated code, whose
# headers are included by their path from the root: "planner/plan.pb.h".
function(sluice_proto name proto)
  cmake_parse_arguments(ARG "GRPC" "" "DEPS" ${ARGN})
  set(generated ${PROJECT_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${generated})
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR}
             OUTPUT_VARIABLE folder)
  cmake_path(REMOVE_EXTENSION proto OUTPUT_VARIABLE stem)
  set(stem ${folder}/${stem})
  set(outputs ${generated}/${stem}.pb.cc ${generated}/${stem}.pb.h)
  set(plugin)
  if(ARG_GRPC)
    list(APPEND outputs ${generated}/${stem}.grpc.pb.cc ${generated}/${stem}.grpc.pb.h)
    set(plugin --grpc_out=${generated} --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN})
  endif()
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND protobuf::protoc -I ${PROJECT_SOURCE_DIR} --cpp_out=${generated} ${plugin}
            ${PROJECT_SOURCE_DIR}/${folder}/${proto}
    DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/${proto}
    COMMENT "Generating ${stem}.pb"
    VERBATIM)
  add_library(${name} STATIC ${outputs})
  target_include_directories(${name} SYSTEM PUBLIC ${generated})
  target_compile_options(${name} PRIVATE -w -pthread ${quick_compile})
  if(SLUICE_PCH)
    target_link_libraries(${name} PRIVATE fmt::fmt)  # its definitions are part of the precompiled header
    target_precompile_headers(${name} REUSE_FROM pch)
  endif()
  add_custom_target(${name}_code DEPENDS ${outputs})
  add_dependencies(generated_code ${name}_code)
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf ${ARG_DEPS})
  if(ARG_GRPC)
    target_link_libraries(${name} PUBLIC gRPC::grpc++)
  endif()
endfunction()
