#include "server/statements/audit_lines.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/mutex.h"

namespace sluice::server {
namespace {

class AuditFile final : public AuditLines {
 public:
  explicit AuditFile(std::string path) : path_(std::move(path)) {}
  AuditFile(const AuditFile&) = delete;
  AuditFile& operator=(const AuditFile&) = delete;
  ~AuditFile() override { CloseFile(); }

  Status Write(std::string_view line) override {
    const MutexLock lock(mutex_);
    RETURN_IF_ERROR(OpenCurrent());
    // What a full disk has cut off stays a line of its own.
    const std::string bytes = fmt::format("{}{}\n", cut_ ? "\n" : "", line);
    ssize_t written = -1;
    do {
      written = write(file_, bytes.data(), bytes.size());
    } while (written < 0 && errno == EINTR);
    if (written == static_cast<ssize_t>(bytes.size())) {
      cut_ = false;
      return OkStatus();
    }
    cut_ = cut_ || written > 0;
    return Failed(written < 0 ? errno : ENOSPC);
  }
  size_t most_bytes() const override { return size_t{64} << 10; }

 private:
  Status Failed(int error) const {
    return Unavailable(fmt::format("the audit cannot be written: {}: {}", path_,
                                   std::generic_category().message(error)))
        .SqlState("58030")
        .Hint("nothing runs without it (--audit of the gateway)");
  }

  // The file of that name, which is another one after the old one was renamed.
  Status OpenCurrent() REQUIRES(mutex_) {
    struct stat named {};
    if (file_ >= 0 && stat(path_.c_str(), &named) == 0 && named.st_ino == opened_.st_ino &&
        named.st_dev == opened_.st_dev) {
      return OkStatus();
    }
    CloseFile();
    constexpr mode_t kOwnerOnly = 0600;
    file_ = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, kOwnerOnly);
    if (file_ < 0 || fstat(file_, &opened_) != 0) {
      return Failed(errno);
    }
    return OkStatus();
  }

  void CloseFile() {
    if (file_ >= 0) {
      close(std::exchange(file_, -1));
    }
    cut_ = false;
  }

  const std::string path_;
  Mutex mutex_;
  int file_ = -1;
  struct stat opened_ {};
  bool cut_ = false;  // the file ends inside a line
};

class AuditSyslog final : public AuditLines {
 public:
  AuditSyslog() { openlog("sluice", LOG_PID | LOG_NDELAY, LOG_AUTHPRIV); }
  ~AuditSyslog() override { closelog(); }
  Status Write(std::string_view line) override {
    syslog(LOG_INFO, "%.*s", static_cast<int>(line.size()), line.data());
    return OkStatus();
  }
  size_t most_bytes() const override { return size_t{8'000}; }  // rsyslog's maxMessageSize is 8 KiB
};

}  // namespace

std::unique_ptr<AuditLines> OpenAuditFile(const std::string& path) {
  return std::make_unique<AuditFile>(path);
}

std::unique_ptr<AuditLines> OpenAuditSyslog() {
  return std::make_unique<AuditSyslog>();
}

}  // namespace sluice::server
