#include <fmt/core.h>

#include <filesystem>
#include <fstream>

#include "catalog/sha256.h"
#include "elastic/storage/checkpoint.h"
#include "elastic/storage/durable_file.h"

// The files of a checkpoint's partitions.
namespace sluice::elastic {
namespace {

// The same bytes have a different digest in another place, so that exchanged files are detected.
catalog::Sha256 BeginDigest(const CheckpointManifest::File& file) {
  catalog::Sha256 digest;
  digest.Add(fmt::format("{}\n{}\n", file.draft, file.partition));
  return digest;
}

// A partition's bytes in their file; checks that they are those that were written.
class PartitionFile final : public ByteSource {
 public:
  PartitionFile(std::string name, const CheckpointManifest::File& file)
      : name_(std::move(name)), file_(file), left_(file.bytes), digest_(BeginDigest(file)) {}

  Status Open() {
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(name_, error);
    in_.open(name_, std::ios::binary);
    if (error || !in_) {
      return SystemError("open", name_);
    }
    in_.seekg(static_cast<std::streamoff>(file_.offset));
    return in_ && file_.offset <= size && file_.bytes <= size - file_.offset ? Status() : Damaged();
  }
  Status Read(char* to, size_t bytes) override {
    if (bytes > left_) {
      return Damaged();
    }
    in_.read(to, static_cast<std::streamsize>(bytes));
    if (!in_) {
      return Damaged();
    }
    digest_.Add({to, bytes});
    left_ -= bytes;
    return left_ > 0 || bytes == 0 || digest_.Hex() == file_.digest ? Status() : Damaged();
  }
  uint64_t left() const override { return left_; }

 private:
  Status Damaged() const {
    return Internal(fmt::format("'{}' is damaged: partition {} is not the {} bytes that were "
                                "written",
                                name_, file_.partition, file_.bytes))
        .SqlState("XX001");
  }

  const std::string name_;
  const CheckpointManifest::File file_;
  std::ifstream in_;
  uint64_t left_;
  catalog::Sha256 digest_;
};

}  // namespace

Result<CheckpointManifest::File> CheckpointDirectory::WritePartition(const std::string& draft,
                                                                     uint32_t partition,
                                                                     const Contents& contents) {
  const Partitions one = {{partition, contents}};
  ASSIGN_OR_RETURN(const std::vector<CheckpointManifest::File> files, WritePartitions(draft, one));
  return files[0];
}

// In one file, since each file costs some milliseconds, however small it is.
Result<std::vector<CheckpointManifest::File>> CheckpointDirectory::WritePartitions(
    const std::string& draft, const Partitions& partitions) {
  std::vector<CheckpointManifest::File> files;
  if (partitions.empty()) {
    return files;
  }
  const std::string name = fmt::format("partition-{}", partitions.begin()->first);
  ASSIGN_OR_RETURN(DurableFile out, DurableFile::Create(fmt::format("{}/{}", draft, name)));
  uint64_t offset = 0;
  for (const auto& [partition, contents] : partitions) {
    CheckpointManifest::File file{
        partition, name, offset, 0, std::filesystem::path(draft).filename().string(), ""};
    catalog::Sha256 digest = BeginDigest(file);
    RETURN_IF_ERROR(contents([&](const std::string& part) {
      file.bytes += part.size();
      digest.Add(part);
      return out.Append(part);
    }));
    file.digest = digest.Hex();
    offset += file.bytes;
    files.push_back(std::move(file));
  }
  RETURN_IF_ERROR(out.Finish());
  return files;
}

Result<std::unique_ptr<ByteSource>> CheckpointDirectory::OpenPartition(
    const std::string& path, const CheckpointManifest::File& file) {
  // The name must be that of a file in this folder.
  if (file.name.empty() || file.name.find('/') != std::string::npos) {
    return Internal(fmt::format("'{}' is damaged: it names a file '{}'", path, file.name))
        .SqlState("XX001");
  }
  auto source = std::make_unique<PartitionFile>(fmt::format("{}/{}", path, file.name), file);
  RETURN_IF_ERROR(source->Open());
  return std::unique_ptr<ByteSource>(std::move(source));
}

}  // namespace sluice::elastic
