#include "executor/processes/detached_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "executor/processes/child_process.h"
#include "executor/processes/local_process_internal.h"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace sluice::executor {
namespace {

std::vector<char*> Environment(bool with_password) {
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (with_password || !std::string_view(*variable).starts_with("PGPASSWORD=")) {
      variables.push_back(*variable);
    }
  }
  variables.push_back(nullptr);
  return variables;
}

}  // namespace

Result<PacketSocket> StartDetached(const std::string& binary, const std::string& title,
                                   const std::string& role, const std::string& config,
                                   const std::string& secret, bool inherits_password) {
  ASSIGN_OR_RETURN(const Descriptor inherited, MakeInherited(config, secret));
  ASSIGN_OR_RETURN(PacketPair pair, MakePacketPair());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, inherited.get(), kConfigDescriptor);
  posix_spawn_file_actions_adddup2(&actions, pair.theirs.descriptor(), kLauncherDescriptor);
  // Close all other descriptors in the child: a listener that it inherited would never be closed.
  posix_spawn_file_actions_addclosefrom_np(&actions, kLauncherDescriptor + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  const std::string program = binary.empty() ? "/proc/self/exe" : binary;
  std::string shown = title;
  std::string argument = role;
  char* arguments[] = {shown.data(), argument.data(), nullptr};
  pid_t pid = -1;
  const int failed = posix_spawn(&pid, program.c_str(), &actions, &attributes, arguments,
                                 Environment(inherits_password).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    return FailedPrecondition(fmt::format("the process of a job cannot be started from {}: {}",
                                          program, std::strerror(failed)));
  }
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {  // it exits at once: BecomeDetached
  }
  return std::move(pair.ours);
}

void BecomeDetached() {
  const pid_t child = fork();
  if (child != 0) {
    _exit(child > 0 ? 0 : 1);
  }
}

}  // namespace sluice::executor
