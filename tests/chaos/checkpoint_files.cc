#include "tests/chaos/checkpoint_files.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace sluice::chaos {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWhole = "checkpoint-", kDraft = "draft-", kPartition = "partition-";

// Names in a folder that may be changing.
std::vector<std::string> Names(const fs::path& folder, std::string_view prefix) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename();
    if (name.starts_with(prefix)) {
      names.push_back(std::move(name));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool ChangePlaces(const fs::path& one, const fs::path& other) {
  return syscall(SYS_renameat2, AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) ==
         0;
}

}  // namespace

void CheckpointFiles::Look() {
  for (std::string& name : Names(folder_, kDraft)) {
    drafts_.insert(std::move(name));
  }
  for (std::string& name : Names(folder_, kWhole)) {
    checkpoints_.insert(std::move(name));
  }
}

std::vector<fs::path> CheckpointFiles::Whole() const {
  std::vector<std::pair<long, fs::path>> found;
  for (const std::string& name : Names(folder_, kWhole)) {
    found.emplace_back(std::strtol(name.c_str() + kWhole.size(), nullptr, 10), folder_ / name);
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<fs::path> paths;
  for (auto& [cut, path] : found) {
    paths.push_back(std::move(path));
  }
  return paths;
}

bool CheckpointFiles::Exchange(uint32_t pick) const {
  const std::vector<fs::path> whole = Whole();
  if (whole.size() < 2) {
    return false;
  }
  const std::vector<std::string> files = Names(whole[0], kPartition);
  const size_t first = files.empty() ? 0 : pick % files.size();
  // Prefer a file of the same length, which the length cannot tell apart.
  for (const bool of_one_length : {true, false}) {
    for (size_t older = 1; older < whole.size(); ++older) {
      for (size_t i = 0; i < files.size(); ++i) {
        const std::string& name = files[(first + i) % files.size()];
        const fs::path one = whole[0] / name, other = whole[older] / name;
        std::error_code error;
        const auto bytes = fs::file_size(one, error), others = fs::file_size(other, error);
        if (!error && (bytes == others || !of_one_length) && ChangePlaces(one, other)) {
          return true;
        }
      }
    }
  }
  return false;
}

bool CheckpointFiles::Damage(uint32_t pick) const {
  const std::vector<fs::path> whole = Whole();
  const std::vector<std::string> files =
      whole.empty() ? std::vector<std::string>() : Names(whole[0], kPartition);
  if (files.empty()) {
    return false;
  }
  std::fstream file(whole[0] / files[pick % files.size()],
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(0, std::ios::end);
  const std::streamoff middle = file.tellg() / 2;
  file.seekg(middle);
  const int byte = file.get();
  file.seekp(middle);
  file.put(static_cast<char>(byte ^ 0x40));
  return file.good();
}

}  // namespace sluice::chaos
