#include "tests/chaos/gateway_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace sluice::chaos {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGreeting = "gRPC on ";

struct Stat {
  char state = 'Z';
  pid_t parent = 0;
  uint64_t started = 0;  // clock ticks since the machine started
};

// Fields 3, 4 and 22 of /proc/PID/stat; the name before them is in parentheses and may contain
// anything.
Stat ReadStat(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(in, line);
  Stat stat;
  const size_t name_end = line.rfind(") ");
  if (name_end == std::string::npos) {
    return stat;
  }
  std::istringstream fields(line.substr(name_end + 2));
  std::string skipped;
  fields >> stat.state >> stat.parent;
  for (int field = 5; field < 22; ++field) {
    fields >> skipped;
  }
  fields >> stat.started;
  return stat;
}

// The first argument: the role of a job's process.
std::string RoleOf(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
  std::string program, role;
  std::getline(in, program, '\0');
  std::getline(in, role, '\0');
  return role;
}

// After fork: must not take any lock.
[[noreturn]] void Become(char* const* arguments, int out, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == parent && dup2(out, STDOUT_FILENO) >= 0) {
    execv(arguments[0], arguments);
  }
  _exit(127);
}

}  // namespace

Victim::~Victim() {
  close(descriptor_);
}

bool Victim::Alive() const {
  pollfd ended{descriptor_, POLLIN, 0};
  return poll(&ended, 1, 0) == 0;
}

bool Victim::Send(int signal) const {
  return syscall(SYS_pidfd_send_signal, descriptor_, signal, nullptr, 0) == 0;
}

Result<std::unique_ptr<GatewayProcess>> GatewayProcess::Start(const Options& options) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) {
    return Internal(fmt::format("pipe: {}", std::strerror(errno)));
  }
  std::vector<std::string> words = {options.binary,       "serve",
                                    "--auth=trust",       "--source=" + options.source,
                                    "--grpc=127.0.0.1:0", fmt::format("--slots={}", options.slots)};
  if (!options.checkpoint_root.empty()) {
    words.push_back("--checkpoint-root=" + options.checkpoint_root);
  }
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    Become(arguments.data(), out[1], parent);
  }
  close(out[1]);
  std::string line;
  char letter = 0;
  while (pid > 0 && read(out[0], &letter, 1) == 1 && letter != '\n') {
    line += letter;
  }
  close(out[0]);
  auto catalog = catalog::OpenCatalog(options.source);
  if (pid > 0 && line.starts_with(kGreeting) && catalog.ok()) {
    return std::unique_ptr<GatewayProcess>(
        new GatewayProcess(pid, line.substr(kGreeting.size()), *std::move(catalog)));
  }
  if (pid > 0) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  return Internal(fmt::format("{} serve does not start", options.binary));
}

GatewayProcess::GatewayProcess(pid_t pid, std::string address,
                               std::unique_ptr<catalog::Catalog> catalog)
    : pid_(pid), address_(std::move(address)), catalog_(std::move(catalog)), parents_{pid} {}

GatewayProcess::~GatewayProcess() {
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
}

Result<std::unique_ptr<server::GatewayClient>> GatewayProcess::Connect() const {
  server::GatewayClientOptions options;
  options.address = address_;
  options.user = "chaos";
  return server::GatewayClient::Connect(options);
}

std::set<pid_t> GatewayProcess::Parents() const {
  const Result<std::vector<catalog::Job>> running = catalog_->jobs().Running();
  const MutexLock lock(mutex_);
  if (running.ok()) {
    parents_ = {pid_};
    const std::vector<catalog::Job>& jobs = running.value();
    for (const catalog::Job& job : jobs) {
      parents_.insert(static_cast<pid_t>(job.runner.pid));
    }
  }
  return parents_;
}

std::vector<std::shared_ptr<const Victim>> GatewayProcess::Processes(
    const std::string& role) const {
  const std::set<pid_t> parents = Parents();
  std::vector<std::pair<uint64_t, std::shared_ptr<const Victim>>> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    const auto pid = static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10));
    if (!parents.contains(ReadStat(pid).parent)) {
      continue;
    }
    const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (descriptor < 0) {
      continue;
    }
    auto victim = std::make_shared<const Victim>(pid, descriptor);
    // Read again, now that the process id cannot be reused.
    const Stat stat = ReadStat(pid);
    if (parents.contains(stat.parent) && stat.state != 'Z' &&
        (role.empty() || RoleOf(pid) == role)) {
      found.emplace_back(stat.started, std::move(victim));
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& left, const auto& right) {
    return std::pair(left.first, left.second->pid()) < std::pair(right.first, right.second->pid());
  });
  std::vector<std::shared_ptr<const Victim>> victims;
  for (auto& [started, victim] : found) {
    victims.push_back(std::move(victim));
  }
  return victims;
}

Result<RecordingSink> Ask(server::GatewayClient& client, const std::string& sql,
                          std::stop_token stop) {
  RecordingSink sink;
  RETURN_IF_ERROR(client.Run(sql, std::move(stop), sink));
  return sink;
}

}  // namespace sluice::chaos
