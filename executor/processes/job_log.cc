#include "executor/processes/job_log.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <system_error>

#include "base/log_limit.h"

namespace sluice::executor {
namespace {

constexpr size_t kMaxLogBytes = size_t{1} << 20;
constexpr std::chrono::hours kKept{24 * 7};

// "": it cannot be created, or another user has created it.
std::string PrivateFolder() {
  std::error_code error;
  const std::filesystem::path temporary = std::filesystem::temp_directory_path(error);
  if (error) {
    return "";
  }
  std::string folder = (temporary / fmt::format("sluice-{}", geteuid())).string();
  mkdir(folder.c_str(), S_IRWXU);  // it may exist already
  struct stat found = {};
  const bool ours = lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
                    found.st_uid == geteuid() && (found.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  return ours ? folder : "";
}

void RemoveOld(const std::string& folder) {
  std::error_code error;
  const auto now = std::filesystem::file_time_type::clock::now();
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const auto written = entry.last_write_time(error);
    if (!error && entry.path().extension() == ".log" && now - written > kKept) {
      std::filesystem::remove(entry.path(), error);
    }
  }
}

}  // namespace

JobLog::JobLog(log::Level level) {
  const std::string folder = level == log::Level::kOff ? "" : PrivateFolder();
  if (folder.empty()) {
    return;
  }
  RemoveOld(folder);
  std::string path = fmt::format("{}/job-{}.log", folder, getpid());
  unlink(path.c_str());  // left by an earlier process with the same id
  const int file =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) {
    return;
  }
  if (dup2(file, STDERR_FILENO) >= 0) {
    path_ = std::move(path);
    log::Start("job", level);
    log::LimitTo(kMaxLogBytes);
  }
  close(file);
}

JobLog::~JobLog() {
  if (!path_.empty() && PathIfWritten().empty()) {
    unlink(path_.c_str());
  }
}

std::string JobLog::PathIfWritten() const {
  struct stat found = {};
  return !path_.empty() && stat(path_.c_str(), &found) == 0 && found.st_size > 0 ? path_ : "";
}

}  // namespace sluice::executor
