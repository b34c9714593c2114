#include "server/pgwire/certificate_files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace sluice::server::pgwire {
namespace {

constexpr mode_t kOwnersAlone = 0700;
constexpr mode_t kOthersAnything = 0077;
constexpr mode_t kOthersWrite = 0022;
constexpr off_t kMostFileBytes = 64 << 10;  // a certificate has about a thousand

Status DiskFailed(std::string_view what, const std::string& path) {
  return Status(Code::kUnavailable,
                fmt::format("cannot {} '{}': {}", what, path, std::strerror(errno)))
      .SqlState("58030");
}

class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  ~OpenFile() {
    if (descriptor_ >= 0) {
      close(descriptor_);
    }
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return descriptor_; }
  bool ok() const { return descriptor_ >= 0; }

 private:
  const int descriptor_;
};

// Nobody else may have put it there.
Status CheckOwner(const struct stat& facts, const std::string& path) {
  if (facts.st_uid != geteuid() && facts.st_uid != 0) {
    return FailedPrecondition(fmt::format("'{}' belongs to somebody else", path))
        .Hint("remove it, or run the gateway as its owner");
  }
  return OkStatus();
}

Status PrepareFolder(const std::string& folder) {
  if (mkdir(folder.c_str(), kOwnersAlone) != 0 && errno != EEXIST) {
    return DiskFailed("make the folder", folder);
  }
  struct stat facts {};
  if (stat(folder.c_str(), &facts) != 0) {
    return DiskFailed("look at", folder);
  }
  if (!S_ISDIR(facts.st_mode)) {
    return FailedPrecondition(fmt::format("'{}' is no folder", folder));
  }
  RETURN_IF_ERROR(CheckOwner(facts, folder));
  if ((facts.st_mode & kOthersWrite) != 0) {
    return FailedPrecondition(
               fmt::format("others may write into '{}', where the gateway's private key is",
                           folder))
        .Hint(fmt::format("chmod 700 '{}'", folder));
  }
  return OkStatus();
}

// nullopt: there is none.
Result<std::optional<std::string>> ReadOwnFile(const std::string& path) {
  const OpenFile file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.ok()) {
    if (errno == ENOENT) {
      return std::optional<std::string>();
    }
    return DiskFailed("open", path);
  }
  struct stat facts {};
  if (fstat(file.get(), &facts) != 0) {
    return DiskFailed("look at", path);
  }
  if (!S_ISREG(facts.st_mode) || facts.st_size > kMostFileBytes) {
    return FailedPrecondition(fmt::format("'{}' is no file of a certificate or a key", path))
        .Hint("remove it, and a new one is made");
  }
  RETURN_IF_ERROR(CheckOwner(facts, path));
  if ((facts.st_mode & kOthersAnything) != 0) {
    return FailedPrecondition(fmt::format("others may read '{}': its mode is {:04o}", path,
                                          facts.st_mode & 07777U))
        .Hint(fmt::format("chmod 600 '{}' if nobody has read it; else remove it and {}, and a new "
                          "pair is made",
                          path, kCertificateFile));
  }
  std::string text(static_cast<size_t>(facts.st_size), '\0');
  for (size_t read_bytes = 0; read_bytes < text.size();) {
    const ssize_t got = read(file.get(), text.data() + read_bytes, text.size() - read_bytes);
    if (got < 0 && errno != EINTR) {
      return DiskFailed("read", path);
    }
    if (got == 0) {
      text.resize(read_bytes);
    }
    read_bytes += got > 0 ? static_cast<size_t>(got) : 0;
  }
  return std::optional(std::move(text));
}

Status WriteAll(int descriptor, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return DiskFailed("write", path);
    }
    text.remove_prefix(written > 0 ? static_cast<size_t>(written) : 0);
  }
  return fsync(descriptor) == 0 ? OkStatus() : DiskFailed("write", path);
}

// What was put into the folder stays there when the machine stops.
Status SyncFolder(const std::string& folder) {
  const OpenFile opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return opened.ok() && fsync(opened.get()) == 0 ? OkStatus() : DiskFailed("write", folder);
}

// The file appears with all of the text, unless there is one by now; what there is then.
Result<std::string> PutNewFile(const std::string& folder, const char* name, std::string_view text) {
  const std::string path = folder + "/" + name;
  std::string draft = path + ".XXXXXX";
  {
    const OpenFile file(mkostemp(draft.data(), O_CLOEXEC));  // 0600
    if (!file.ok()) {
      return DiskFailed("make", draft);
    }
    const Status written = WriteAll(file.get(), text, draft);
    if (!written.ok()) {
      unlink(draft.c_str());
      return written;
    }
  }
  const bool put = link(draft.c_str(), path.c_str()) == 0 || errno == EEXIST;
  const Status linked = put ? OkStatus() : DiskFailed("make", path);
  unlink(draft.c_str());
  RETURN_IF_ERROR(linked);
  RETURN_IF_ERROR(SyncFolder(folder));
  ASSIGN_OR_RETURN(std::optional<std::string> there, ReadOwnFile(path));
  if (!there.has_value()) {
    return FailedPrecondition(fmt::format("somebody has removed '{}' meanwhile", path));
  }
  return *std::move(there);
}

}  // namespace

Result<Certificate> KeepCertificate(const std::string& folder, const std::string& host,
                                    int64_t now_seconds) {
  RETURN_IF_ERROR(PrepareFolder(folder));
  const std::string certificate_path = folder + "/" + kCertificateFile;
  const std::string key_path = folder + "/" + kKeyFile;
  // In this order: who makes a pair puts down the key first.
  ASSIGN_OR_RETURN(std::optional<std::string> certificate, ReadOwnFile(certificate_path));
  ASSIGN_OR_RETURN(std::optional<std::string> key, ReadOwnFile(key_path));
  Certificate kept;
  if (key.has_value()) {
    kept.key = *std::move(key);
  } else if (certificate.has_value()) {
    return FailedPrecondition(fmt::format("'{}' has lost its private key: there is no '{}'",
                                          certificate_path, key_path))
        .Hint(fmt::format("bring '{}' back, or remove the certificate, and a new pair is made",
                          kKeyFile));
  } else {
    ASSIGN_OR_RETURN(const std::string made, MakePrivateKey());
    ASSIGN_OR_RETURN(kept.key, PutNewFile(folder, kKeyFile, made));
  }
  Status fits;
  if (certificate.has_value()) {
    kept.certificate = *std::move(certificate);
  } else {
    Result<std::string> made = CertifyKey(kept.key, host, now_seconds);
    if (made.status().sqlstate() == "22023") {
      return made.status();
    }
    fits = made.status();
    if (made.ok()) {
      ASSIGN_OR_RETURN(kept.certificate, PutNewFile(folder, kCertificateFile, *made));
    }
  }
  if (fits.ok()) {
    fits = CheckCertificate(kept, now_seconds);
  }
  if (!fits.ok()) {
    return std::move(fits)
        .Because(fmt::format("'{}'", folder))
        .Hint(fmt::format("remove {} and {} there, and a new pair is made; clients that check the "
                          "fingerprint have to be told the new one",
                          kCertificateFile, kKeyFile));
  }
  return kept;
}

}  // namespace sluice::server::pgwire
