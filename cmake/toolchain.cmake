# Uses ccache and lld if they are installed; every warning is an error.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

find_program(LLD_PROGRAM NAMES ld.lld)
if(LLD_PROGRAM)
  add_link_options(-fuse-ld=lld)
endif()

# Hardening: an out-of-bounds access or a guessed address ends the process instead of serving an attacker.
# tests/tidy checks the binary for each of these. Options that change code are for shipped builds only.
add_compile_options(
  $<$<CONFIG:Release>:-fPIE> $<$<CONFIG:Release>:-fstack-protector-strong> $<$<CONFIG:Release>:-U_FORTIFY_SOURCE>
  $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2>)
add_link_options(-pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)

add_library(sluice_flags INTERFACE)
target_include_directories(sluice_flags INTERFACE ${PROJECT_SOURCE_DIR})
# -pthread everywhere: gRPC requires it, and a precompiled header must have the same flags as its users.
target_compile_options(sluice_flags INTERFACE
  -pthread -Wall -Wextra -Wpedantic -Wconversion -Wnon-virtual-dtor -Wold-style-cast
  -Woverloaded-virtual -Wimplicit-fallthrough -Wunused-result -Werror
  # Off: GCC 12's false warnings about inlined std::string and std::vector (PR 105329, 105651, 107852).
  # -Wshadow: clang's compares the types of files that are only built together.
  $<$<CXX_COMPILER_ID:GNU>:-Wshadow -Wduplicated-cond -Wlogical-op -Wno-restrict -Wno-stringop-overflow
                           -Wno-stringop-overread -Wno-array-bounds -Wno-maybe-uninitialized>
  # Off: clang's -Wconversion is about signs, too.
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety -Wno-sign-conversion>)
target_link_options(sluice_flags INTERFACE -pthread)
