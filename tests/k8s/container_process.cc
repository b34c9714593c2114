#include "tests/k8s/container_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "k8s/api_verbs.h"
#include "k8s/credentials_internal.h"
#include "k8s/json_internal.h"
#include "k8s/pod_state.h"
#include "tests/k8s/json_texts.h"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace sluice::k8s {
namespace {

namespace fs = std::filesystem;
using rapidjson::Document;
using rapidjson::Value;

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::optional<Mounts> MountVolumes(ApiClient& client, const Object& pod, const std::string& folder,
                                   const std::stop_token& stop) {
  const Document json = ParseJsonObject(pod.json, "a pod").value();
  std::map<std::string, std::string> places;  // by the volume
  for (const Value& volume : ArrayIn(json, {"spec", "volumes"})) {
    const std::string name(TextIn(volume, {"name"}));
    const std::string place = folder + "/" + name;
    fs::create_directories(place);
    places[name] = place;
    const std::string secret_name(TextIn(volume, {"secret", "secretName"}));
    if (secret_name.empty()) {
      continue;
    }
    const ObjectAnswer secret = GetObject(client, kSecrets, pod.namespace_name, secret_name, stop);
    if (!secret.ok()) {
      return std::nullopt;
    }
    const Document content = ParseJsonObject(secret.object.json, "a Secret").value();
    for (const auto& [file, base64] : TextsOf(content, {"data"})) {
      std::ofstream(place + "/" + file, std::ios::binary)
          << (base64.empty() ? "" : DecodeBase64(base64, "a Secret").value());
    }
  }
  Mounts mounts;
  for (const Value& container : ArrayIn(json, {"spec", "containers"})) {
    if (TextIn(container, {"name"}) == kContainerName) {
      for (const Value& mount : ArrayIn(container, {"volumeMounts"})) {
        mounts[std::string(TextIn(mount, {"mountPath"}))] =
            places[std::string(TextIn(mount, {"name"}))];
      }
    }
  }
  return mounts;
}

ContainerProcess ProcessOf(const Object& pod, const Mounts& mounts, const std::string& binary,
                           const PodPlace& place) {
  const Document json = ParseJsonObject(pod.json, "a pod").value();
  ContainerProcess process;
  std::vector<std::string>& arguments = process.arguments;
  std::vector<std::string>& variables = process.variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("SLUICE_")) {
      variables.emplace_back(*variable);  // for the sanitizers
    }
  }
  variables.push_back("KUBECONFIG=" + place.kubeconfig);
  process.binary = "/bin/sleep";  // a pod without our container: somebody's service
  for (const Value& container : ArrayIn(json, {"spec", "containers"})) {
    if (TextIn(container, {"name"}) != kContainerName) {
      continue;
    }
    process.binary = binary;
    for (const Value& argument : ArrayIn(container, {"args"})) {
      std::string text = argument.GetString();
      for (const auto& [path, folder] : mounts) {
        if (text.starts_with(path)) {
          text.replace(0, path.size(), folder);
        }
      }
      arguments.push_back(std::move(text));
    }
    std::map<std::string, std::string> named;
    for (const Value& each : ArrayIn(container, {"env"})) {
      const std::string field(TextIn(each, {"valueFrom", "fieldRef", "fieldPath"}));
      std::string value(TextIn(each, {"value"}));
      if (field == "status.podIP") {
        value = place.address;
      } else if (field == "spec.nodeName") {
        value = place.node;
      }
      named[fmt::format("$({})", TextIn(each, {"name"}))] = value;
      variables.push_back(std::string(TextIn(each, {"name"})) + "=" + value);
    }
    for (std::string& argument : arguments) {
      const auto found = named.find(argument);
      argument = found == named.end() ? argument : found->second;
    }
  }
  if (process.binary != binary) {
    arguments = {"1000000"};
  }
  return process;
}

int Spawn(ContainerProcess process, const std::string& log) {
  process.arguments.insert(process.arguments.begin(), process.binary);
  const std::vector<char*> argv = Pointers(process.arguments);
  const std::vector<char*> envp = Pointers(process.variables);
  const int output = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {  // only calls that are safe after a fork in a multi-threaded process
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    setpgid(0, 0);
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    close_range(3, ~0U, 0);
    if (getppid() == parent) {
      execve(argv[0], argv.data(), envp.data());
    }
    _exit(127);
  }
  close(output);
  close(input);
  return child;
}

}  // namespace sluice::k8s
