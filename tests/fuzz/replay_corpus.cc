#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

#include "tests/fuzz/fuzz_targets.h"

namespace {

// Runs the target over every file of the folder; returns their number.
size_t Replay(const FuzzTarget& target, const char* folder) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
    std::fprintf(stderr, "%s\n", entry.path().c_str());  // the last name is the culprit
    target.run(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    ++files;
  }
  return files;
}

}  // namespace

// Stands in for libFuzzer where the targets are built without it: the corpus of one as a test.
int main(int argc, char** argv) {
  const auto targets = FuzzTargets();
  const auto target = std::find_if(targets.begin(), targets.end(), [&](const FuzzTarget& one) {
    return argc == 3 && std::string_view(one.name) == argv[1];
  });
  if (target == targets.end()) {
    std::fprintf(stderr, "usage: %s TARGET CORPUS_FOLDER\n", argv[0]);
    return 2;
  }
  try {
    const size_t files = Replay(*target, argv[2]);
    std::printf("%zu inputs\n", files);
    return files > 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
