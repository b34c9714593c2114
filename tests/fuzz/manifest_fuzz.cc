#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/check.h"
#include "elastic/storage/checkpoint.h"
#include "elastic/storage/crc32c.h"
#include "tests/fuzz/target.h"

// A checkpoint's manifest: the input with a correct checksum, next to one file of a partition.
namespace sluice::elastic {
namespace {

namespace fs = std::filesystem;

// A folder for this process; removed when it ends.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("sluice-manifest-" + std::to_string(getpid()))) {
    fs::create_directories(path_ / "checkpoint-1");
    Write("checkpoint-1/partition-0", "some bytes");
    directory_ = CheckpointDirectory::Open(path_.string(), 0).value();
  }
  ~Folder() { fs::remove_all(path_); }
  void Write(const std::string& name, std::string_view bytes) const {
    std::ofstream out(path_ / name, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  const CheckpointDirectory& directory() const { return *directory_; }

 private:
  const fs::path path_;
  std::optional<CheckpointDirectory> directory_;
};

void ReadManifest(std::string_view input) {
  static const Folder folder;
  std::string bytes(input);
  const uint32_t crc = Crc32c(bytes);
  bytes.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  folder.Write("checkpoint-1/manifest", bytes);
  const auto found = folder.directory().Newest();
  SLUICE_CHECK(!found.ok() || found->has_value(), "there is a checkpoint, whole or not");
}

}  // namespace
}  // namespace sluice::elastic

FUZZ_TARGET(manifest) {
  sluice::elastic::ReadManifest({reinterpret_cast<const char*>(data), size});
  return 0;
}
