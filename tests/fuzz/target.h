#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

// FUZZ_TARGET(name) { ... }: takes hostile bytes, `data` and `size`. In the `fuzz` preset each
// target is a libFuzzer program of its own; elsewhere they are functions of one program, which
// replay_corpus.cc runs over their corpora.
#ifdef SLUICE_FUZZ
#define FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
#else
#define FUZZ_TARGET(name)                              \
  int name##_target(const uint8_t* data, size_t size); \
  int name##_target(const uint8_t* data, size_t size)
#endif

namespace sluice {

// A target's law does not hold.
[[noreturn]] inline void Broken(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace sluice
