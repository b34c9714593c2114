#include "elastic/storage/durable_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace sluice::elastic {

Status SystemError(const std::string& what, const std::string& path) {
  const int error = errno;
  const Code code = error == ENOSPC || error == EDQUOT ? Code::kResourceExhausted
                    : error == EACCES                  ? Code::kPermissionDenied
                                                       : Code::kUnavailable;
  return Status(code, fmt::format("cannot {} '{}': {}", what, path, std::strerror(error)));
}

Result<DurableFile> DurableFile::Create(const std::string& path) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    return SystemError("create", path);
  }
  return DurableFile(path, descriptor);
}

DurableFile::DurableFile(DurableFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

DurableFile::~DurableFile() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

Status DurableFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      return SystemError("write", path_);
    }
  }
  return Status();
}

Status DurableFile::Finish() {
  if (fsync(descriptor_) != 0) {
    return SystemError("sync", path_);
  }
  return close(std::exchange(descriptor_, -1)) != 0 ? SystemError("close", path_) : Status();
}

Status WriteDurably(const std::string& path, std::span<const std::string_view> pieces) {
  ASSIGN_OR_RETURN(DurableFile file, DurableFile::Create(path));
  for (std::string_view bytes : pieces) {
    RETURN_IF_ERROR(file.Append(bytes));
  }
  return file.Finish();
}

Status SyncFolder(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    return SystemError("open", path);
  }
  const int synced = fsync(descriptor);
  Status status = synced != 0 ? SystemError("sync", path) : Status();
  close(descriptor);
  return status;
}

Status RenameDurably(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    return SystemError("rename", from);
  }
  return SyncFolder(std::filesystem::path(to).parent_path().string());
}

Result<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return SystemError("open", path);
  }
  std::ostringstream bytes;
  bytes << in.rdbuf();
  if (in.bad()) {
    return SystemError("read", path);
  }
  return std::move(bytes).str();
}

}  // namespace sluice::elastic
