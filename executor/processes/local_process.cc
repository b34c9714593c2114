#include <fmt/core.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {  // missing in glibc 2.36's headers
#include <sys/pidfd.h>
}

#include "executor/processes/child_process.h"
#include "executor/processes/local_process_internal.h"
#include "executor/processes/process_title.h"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace sluice::executor {
namespace {

// The tail of a process's standard error that is kept: enough for a stack of errors.
constexpr size_t kErrorBytes = 4096;

// Limits the memory that the process allocates from now on: heap and stacks, not mapped files.
Status LimitMemory(pid_t pid, int64_t bytes) {
  const rlimit limit{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
  return prlimit(pid, RLIMIT_DATA, &limit, nullptr) == 0
             ? Status()
             : SystemError("limiting the memory of a process");
}

}  // namespace

Result<Descriptor> MakeInherited(const std::string& config, const std::string& secret) {
  std::string bytes;
  for (const std::string* part : {&config, &secret}) {
    const uint64_t length = part->size();
    bytes.append(reinterpret_cast<const char*>(&length), sizeof(length));
    bytes.append(*part);
  }
  return MakeMemory("sluice-config", bytes);
}

Result<std::unique_ptr<LocalProcess>> LocalProcess::Spawn(const std::string& binary,
                                                          const elastic::ProcessSpec& spec) {
  auto process = std::make_unique<LocalProcess>();
  process->name = spec.name;
  process->role = spec.role;
  ASSIGN_OR_RETURN(const Descriptor config, MakeInherited(spec.config, spec.secret));
  ASSIGN_OR_RETURN(Pipe error, MakePipe());
  ASSIGN_OR_RETURN(Pipe life, MakePipe());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, error.write.get(), STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, config.get(), kConfigDescriptor);
  posix_spawn_file_actions_adddup2(&actions, life.read.get(), kLauncherDescriptor);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&actions, kLauncherDescriptor + 1);
  // A process group of its own: Ctrl-C at the shell reaches only the gateway, which stops its
  // fleet.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::string role(elastic::RoleName(spec.role));
  std::string title = TitleOfProcess(spec.name);
  char* arguments[] = {title.data(), role.data(), nullptr};
  const int failed =
      posix_spawn(&process->pid, binary.c_str(), &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    return FailedPrecondition(fmt::format("process '{}' cannot be started from {}: {}", spec.name,
                                          binary, std::strerror(failed)));
  }
  process->pidfd = Descriptor(pidfd_open(process->pid, 0));
  Status watched =
      process->pidfd.open() ? Status() : SystemError("watching a process of the fleet");
  if (watched.ok() && spec.resources.memory_bytes > 0) {
    watched = LimitMemory(process->pid, spec.resources.memory_bytes);
  }
  if (!watched.ok()) {
    kill(process->pid, SIGKILL);
    waitpid(process->pid, nullptr, 0);
    return watched;
  }
  process->error = std::move(error.read);
  process->life = std::move(life.write);
  return process;
}

void LocalProcess::ReadError() {
  char buffer[4096];
  for (;;) {
    const ssize_t got = read(error.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EAGAIN) {
      return;
    }
    if (got <= 0) {
      error.Close();
      break;
    }
    last_error.append(buffer, static_cast<size_t>(got));
    if (last_error.size() > 2 * kErrorBytes) {
      last_error.erase(0, last_error.size() - kErrorBytes);
    }
  }
  if (last_error.size() > kErrorBytes) {
    last_error.erase(0, last_error.size() - kErrorBytes);
  }
}

}  // namespace sluice::executor
