#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include "k8s/credentials_internal.h"
#include "k8s/json_internal.h"
#include "k8s/rfc3339.h"

extern char** environ;

namespace sluice::k8s {
namespace {

// It may ask a browser or a cloud; a program that prints nothing for this long never will.
constexpr auto kPluginTime = std::chrono::seconds(60);
// Its credentials are used only until this long before they expire.
constexpr double kEarlySeconds = 10;

std::string ExecInfo(const ExecPlugin& plugin) {
  rapidjson::Document info;
  info.SetObject();
  auto& memory = info.GetAllocator();
  SetMember(info, "apiVersion", JsonText(plugin.api_version, memory), memory);
  SetMember(info, "kind", JsonText("ExecCredential", memory), memory);
  rapidjson::Value& spec = Within(info, {"spec"}, memory);
  SetMember(spec, "interactive", rapidjson::Value(false), memory);
  if (!plugin.cluster_json.empty()) {
    rapidjson::Document cluster(&memory);
    cluster.Parse(plugin.cluster_json.c_str());
    SetMember(spec, "cluster", std::move(static_cast<rapidjson::Value&>(cluster)), memory);
  }
  return ToJson(info);
}

// Our own variables, overridden by the plug-in's.
std::vector<std::string> EnvironmentOf(const ExecPlugin& plugin) {
  std::map<std::string, std::string> more = plugin.environment;
  more["KUBERNETES_EXEC_INFO"] = ExecInfo(plugin);
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string variable = *each;
    if (!more.contains(variable.substr(0, variable.find('=')))) {
      variables.push_back(variable);
    }
  }
  for (const auto& [name, value] : more) {
    variables.push_back(fmt::format("{}={}", name, value));
  }
  return variables;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

// One run of the program: its output and exit status. Killed with its children when this object is
// destroyed.
class Run {
 public:
  ~Run() {
    if (output_ >= 0) {
      close(output_);
    }
    if (pid_ > 0) {
      kill(-pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }

  Status Start(const ExecPlugin& plugin) {
    std::vector<std::string> arguments = {plugin.command};
    arguments.insert(arguments.end(), plugin.arguments.begin(), plugin.arguments.end());
    std::vector<std::string> variables = EnvironmentOf(plugin);
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
      return Unavailable(fmt::format("no pipe to {}: {}", plugin.command, std::strerror(errno)));
    }
    output_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    const int failed = posix_spawnp(&pid_, plugin.command.c_str(), &actions, &attributes,
                                    Pointers(arguments).data(), Pointers(variables).data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (failed != 0) {
      pid_ = -1;
      return FailedPrecondition(fmt::format("cannot run the kubeconfig's exec plug-in {}: {}",
                                            plugin.command, std::strerror(failed)))
          .Hint(plugin.install_hint);
    }
    return OkStatus();
  }

  Result<std::string> Output(const ExecPlugin& plugin) {
    const auto until = std::chrono::steady_clock::now() + kPluginTime;
    std::string text;
    std::array<char, 4096> part{};
    while (true) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          until - std::chrono::steady_clock::now());
      pollfd readable{output_, POLLIN, 0};
      const int ready = poll(&readable, 1, std::max(0, static_cast<int>(left.count())));
      if (ready < 0 && errno == EINTR) {
        continue;
      }
      if (ready <= 0) {
        return Unavailable(
            fmt::format("the kubeconfig's exec plug-in {} said nothing", plugin.command));
      }
      const ssize_t count = read(output_, part.data(), part.size());
      if (count == 0) {
        break;
      }
      if (count < 0 || text.size() + static_cast<size_t>(count) > kMaxCredentialBytes) {
        return InvalidArgument(
            fmt::format("the kubeconfig's exec plug-in {} says more than 1 MiB", plugin.command));
      }
      text.append(part.data(), static_cast<size_t>(count));
    }
    int how = 0;
    waitpid(std::exchange(pid_, -1), &how, 0);
    if (how != 0) {
      return FailedPrecondition(
          WIFEXITED(how) ? fmt::format("the kubeconfig's exec plug-in {} ended with {}",
                                       plugin.command, WEXITSTATUS(how))
                         : fmt::format("the kubeconfig's exec plug-in {} was killed by signal {}",
                                       plugin.command, WTERMSIG(how)));
    }
    return text;
  }

 private:
  pid_t pid_ = -1;
  int output_ = -1;
};

// Seconds from now until an RFC 3339 time; 0 if it is not valid.
double SecondsUntil(const std::string& time) {
  const std::optional<int64_t> at = MicrosOf(time);
  return at ? static_cast<double>(*at - WallMicros()) / 1e6 : 0;
}

class ExecSource final : public LoginSource {
 public:
  explicit ExecSource(ExecPlugin plugin) : plugin_(std::move(plugin)) {}

  Result<Answer> Read() override {
    Run run;
    RETURN_IF_ERROR(run.Start(plugin_));
    ASSIGN_OR_RETURN(const std::string text, run.Output(plugin_));
    const std::string what =
        fmt::format("what the kubeconfig's exec plug-in {} printed", plugin_.command);
    ASSIGN_OR_RETURN(const rapidjson::Document credential, ParseJsonObject(text, what));
    Answer answer;
    answer.login.token = TextIn(credential, {"status", "token"});
    answer.login.certificate_pem = TextIn(credential, {"status", "clientCertificateData"});
    answer.login.key_pem = TextIn(credential, {"status", "clientKeyData"});
    if (TextIn(credential, {"kind"}) != "ExecCredential" ||
        TextIn(credential, {"apiVersion"}) != plugin_.api_version) {
      return InvalidArgument(
          fmt::format("{} is not an ExecCredential of {}", what, plugin_.api_version));
    }
    if (answer.login.certificate_pem.empty() != answer.login.key_pem.empty() ||
        (answer.login.token.empty() && answer.login.key_pem.empty())) {
      return InvalidArgument(
          fmt::format("{} has neither a token nor a certificate with its key", what));
    }
    const std::string end(TextIn(credential, {"status", "expirationTimestamp"}));
    if (!end.empty()) {
      answer.good_for_seconds = std::max(0.0, SecondsUntil(end) - kEarlySeconds);
    }
    return answer;
  }

 private:
  const ExecPlugin plugin_;
};

}  // namespace

std::unique_ptr<LoginSource> MakeExecSource(ExecPlugin plugin) {
  return std::make_unique<ExecSource>(std::move(plugin));
}

}  // namespace sluice::k8s
