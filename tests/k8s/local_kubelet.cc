#include "tests/k8s/local_kubelet.h"

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "base/check.h"
#include "k8s/api_verbs.h"
#include "k8s/json_internal.h"
#include "k8s/pod_labels.h"
#include "tests/k8s/container_process.h"
#include "tests/k8s/garbage_collection.h"
#include "tests/k8s/json_texts.h"
#include "tests/k8s/pod_status_texts.h"

namespace sluice::k8s {
namespace {

namespace fs = std::filesystem;
using rapidjson::Document;
using rapidjson::Value;

constexpr std::chrono::milliseconds kTurn{10};
constexpr std::chrono::milliseconds kPlacingPause{700};

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

ApiRequest Request(Verb verb, const Resource& resource, const std::string& namespace_name,
                   const std::string& name, const std::string& subresource,
                   const std::string& body) {
  ApiRequest request;
  request.verb = verb;
  request.resource = resource;
  request.namespace_name = namespace_name;
  request.name = name;
  request.subresource = subresource;
  request.body = body;
  return request;
}

}  // namespace

LocalKubelet::LocalKubelet(Options options)
    : options_(std::move(options)), scheduler_(options_.nodes, options_.node_cpu) {
  std::string pattern = (fs::temp_directory_path() / "sluice-kubelet-XXXXXX").string();
  SLUICE_CHECK(mkdtemp(pattern.data()) != nullptr, "no temporary folder");
  folder_ = pattern;
  kubeconfig_ = folder_ + "/kubeconfig";
  std::ofstream(kubeconfig_) << fmt::format(R"(
clusters: [{{name: c, cluster: {{server: "{}"}}}}]
users: [{{name: admin, user: {{token: admin}}}}]
contexts: [{{name: c, context: {{cluster: c, user: admin, namespace: {}}}}}]
current-context: c
)",
                                            api_.url(), namespace_);
  credentials_ = CredentialsFromKubeconfig({kubeconfig_}, "", clock_).value();
  client_ = std::make_unique<ApiClient>(*credentials_, ApiOptions(), clock_);
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

LocalKubelet::~LocalKubelet() {
  thread_.request_stop();
  thread_.join();
  proxies_.clear();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::optional<int> LocalKubelet::ProcessId(const std::string& pod) const {
  const std::lock_guard lock(mutex_);
  const auto found = pods_.find(pod);
  return found == pods_.end() || found->second.pid < 0 || found->second.ended
             ? std::nullopt
             : std::optional(found->second.pid);
}

std::vector<std::string> LocalKubelet::Running(const std::string& role) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, pod] : pods_) {
    if (pod.role == role && pod.pid > 0 && !pod.ended) {
      names.push_back(name);
    }
  }
  return names;
}

std::string LocalKubelet::NodeOf(const std::string& pod) const {
  const std::lock_guard lock(mutex_);
  const auto found = pods_.find(pod);
  return found == pods_.end() ? "" : found->second.node;
}

std::vector<std::string> LocalKubelet::Started(const std::string& role) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [its_role, name] : started_) {
    if (its_role == role) {
      names.push_back(name);
    }
  }
  return names;
}

std::optional<int> LocalKubelet::ExitCodeOf(const std::string& pod) const {
  const std::lock_guard lock(mutex_);
  const auto found = exit_codes_.find(pod);
  return found == exit_codes_.end() ? std::nullopt : std::optional(found->second);
}

std::string LocalKubelet::LogOf(const std::string& pod) const {
  return ReadAll(folder_ + "/log-" + pod);
}

bool LocalKubelet::Kill(const std::string& pod) {
  const std::lock_guard lock(mutex_);
  const auto found = pods_.find(pod);
  return found != pods_.end() && found->second.pid > 0 && !found->second.ended &&
         kill(found->second.pid, SIGKILL) == 0;
}

bool LocalKubelet::StartAgain(const std::string& pod) {
  {
    const std::lock_guard lock(mutex_);
    again_.insert(pod);
  }
  return Kill(pod);
}

void LocalKubelet::Delete(const std::string& pod, int grace_seconds) {
  DeleteAll(*client_, {{kPods, namespace_, pod, "", grace_seconds}}, {});
  // At once: by its next turn the pod's replacement may be at work.
  const std::optional<int> process = ProcessId(pod);
  if (grace_seconds > 0 && end_delay_.load() == std::chrono::seconds(0) && process.has_value()) {
    kill(*process, SIGTERM);
  }
}

size_t LocalKubelet::Count(const Resource& resource) {
  return ListObjects(*client_, {resource, namespace_, ""}, {}).objects.size();
}

std::string LocalKubelet::NextAddress() {
  // Lower numbers are the Services' (fake_api_store.cc).
  const int number = 100 + addresses_++ % 150;
  return fmt::format("127.{}.{}.{}", 1 + getpid() / 256 % 250, getpid() % 256, number);
}

void LocalKubelet::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    Turn(stop);
    std::this_thread::sleep_for(kTurn);
  }
  const std::lock_guard lock(mutex_);
  for (auto& [name, pod] : pods_) {
    if (pod.pid > 0 && !pod.ended) {
      kill(pod.pid, SIGKILL);
      waitpid(pod.pid, nullptr, 0);
    }
  }
}

void LocalKubelet::Turn(const std::stop_token& stop) {
  Listing pods = ListObjects(*client_, {kPods, "", ""}, stop);
  const Listing services = ListObjects(*client_, {kServices, "", ""}, stop);
  if (!pods.ok() || !services.ok()) {
    return;
  }
  LeadServices(services.objects);
  const auto now = std::chrono::steady_clock::now();
  const bool placing = !options_.workers_first || now - placed_at_ >= kPlacingPause;
  if (options_.workers_first) {
    std::reverse(pods.objects.begin(), pods.objects.end());
    placed_at_ = placing ? now : placed_at_;
  }
  std::set<std::string> there;
  for (const Object& object : pods.objects) {
    there.insert(object.uid);
    Look(object, placing, stop);
  }
  {
    // Unknown to the API: a kubelet ends such a container.
    const std::lock_guard lock(mutex_);
    for (auto it = pods_.begin(); it != pods_.end();) {
      Pod& pod = it->second;
      Reap(pod);
      if (pod.ended) {
        exit_codes_[it->first] = pod.exit_code;
      }
      const bool known = there.contains(pod.uid);  // a later pod may have its name
      if (!known && pod.pid > 0 && !pod.ended) {
        kill(pod.pid, SIGKILL);
      }
      if (known || (pod.pid > 0 && !pod.ended)) {
        ++it;
        continue;
      }
      scheduler_.Free(pod.uid);
      it = pods_.erase(it);
    }
  }
  CollectGarbage(*client_, pods.objects, services.objects, stop);
}

void LocalKubelet::Occupy(const std::string& node, double cpu) {
  scheduler_.Occupy(node, cpu);
}

// False: it has no place yet, and its condition says why.
bool LocalKubelet::Place(const Object& object, Pod& pod, const std::stop_token& stop) {
  const std::optional<std::string> node = scheduler_.Place(object);
  if (node.has_value()) {
    pod.node = *node;
    return true;
  }
  if (refused_.insert(object.uid).second) {
    client_->Call(Request(Verb::kPatch, kPods, object.namespace_name, object.name, "status",
                          UnschedulableStatus(scheduler_.Refusal())),
                  stop);
  }
  return false;
}

void LocalKubelet::Look(const Object& object, bool placing, const std::stop_token& stop) {
  Pod pod;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pods_.find(object.name);
    if (found != pods_.end() && found->second.uid != object.uid) {
      return;  // an earlier pod with this name still runs
    }
    if (found != pods_.end()) {
      pod = found->second;
    }
  }
  if (pod.uid.empty() && object.leaving) {
    client_->Call(Request(Verb::kDelete, kPods, object.namespace_name, object.name, "",
                          R"({"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0})"),
                  stop);
    return;
  }
  if (pod.uid.empty() && (!placing || !Place(object, pod, stop))) {
    return;
  }
  if (pod.uid.empty()) {
    const auto role = object.labels.find(std::string(kRoleLabel));
    pod.uid = object.uid;
    pod.role = role == object.labels.end() ? "" : role->second;
    pod.address = NextAddress();
    pod.folder = folder_ + "/" + object.uid;
    pod.log = folder_ + "/log-" + object.name;
    pod.placed_at = std::chrono::steady_clock::now();
    client_->Call(Request(Verb::kCreate, kPods, object.namespace_name, object.name, "binding",
                          fmt::format(R"({{"apiVersion":"v1","kind":"Binding","metadata":{{)"
                                      R"("name":"{}"}},"target":{{"kind":"Node","name":"{}"}}}})",
                                      object.name, pod.node)),
                  stop);
    const std::lock_guard lock(mutex_);
    pods_[object.name] = pod;
  }
  const auto now = std::chrono::steady_clock::now();
  const bool fetches_image = pod.pid < 0 && !object.leaving &&
                             pod.role == elastic::RoleName(elastic::Role::kMaster) &&
                             now < *pod.placed_at + options_.master_start;
  if (fetches_image || (pod.pid < 0 && !object.leaving && !Start(object, pod, stop))) {
    return;  // or a Secret does not exist yet
  }
  if (object.leaving && !pod.end_at) {
    pod.end_at = now + end_delay_.load();
  }
  if (pod.end_at && now >= *pod.end_at && !pod.asked_to_end) {
    pod.asked_to_end = true;
    const Document json = ParseJsonObject(object.json, "a pod").value();
    const int64_t grace = NumberIn(json, {"metadata", "deletionGracePeriodSeconds"});
    pod.kill_at = now + std::chrono::seconds(grace);
    if (pod.pid > 0 && !pod.ended) {
      kill(pod.pid, SIGTERM);
    }
  }
  Reap(pod);
  if (pod.kill_at && std::chrono::steady_clock::now() > *pod.kill_at && pod.pid > 0 && !pod.ended) {
    kill(pod.pid, SIGKILL);
  }
  if (pod.ended && ForgetsEndOf(object.name)) {
    pod.ended = false;
    Start(object, pod, stop);
  }
  if (pod.ended && !pod.told) {
    Tell(object.name, pod, stop);
    pod.told = true;
  }
  {
    const std::lock_guard lock(mutex_);
    pods_[object.name] = pod;
  }
  if (object.leaving && (pod.pid < 0 || pod.ended)) {
    client_->Call(Request(Verb::kDelete, kPods, object.namespace_name, object.name, "",
                          R"({"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0})"),
                  stop);
  }
}

bool LocalKubelet::ForgetsEndOf(const std::string& pod) {
  const std::lock_guard lock(mutex_);
  return again_.erase(pod) > 0;
}

bool LocalKubelet::Start(const Object& object, Pod& pod, const std::stop_token& stop) {
  const std::optional<Mounts> mounts = MountVolumes(*client_, object, pod.folder, stop);
  if (!mounts.has_value()) {
    return false;
  }
  pod.pid = Spawn(ProcessOf(object, *mounts, options_.binary, {pod.address, pod.node, kubeconfig_}),
                  pod.log);
  {
    const std::lock_guard lock(mutex_);
    pods_[object.name] = pod;
    std::string labels;
    for (const auto& [label, value] : object.labels) {
      labels += fmt::format("\n{}={}\n", label, value);
    }
    labels_of_[object.name] = labels;
    started_.emplace_back(pod.role, object.name);
  }
  client_->Call(Request(Verb::kPatch, kPods, object.namespace_name, object.name, "status",
                        RunningStatus(pod.address)),
                stop);
  return true;
}

void LocalKubelet::Reap(Pod& pod) {
  int status = 0;
  if (pod.pid > 0 && !pod.ended && waitpid(pod.pid, &status, WNOHANG) == pod.pid) {
    pod.ended = true;
    pod.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    scheduler_.Free(pod.uid);
  }
}

void LocalKubelet::Tell(const std::string& name, const Pod& pod, const std::stop_token& stop) {
  client_->Call(Request(Verb::kPatch, kPods, namespace_, name, "status",
                        EndedStatus(pod.exit_code, ReadAll(pod.log))),
                stop);
}

std::string LocalKubelet::TargetOf(const std::map<std::string, std::string>& selector) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, pod] : pods_) {
    const auto labels = labels_of_.find(name);
    const bool chosen = pod.pid > 0 && !pod.ended && labels != labels_of_.end() &&
                        std::all_of(selector.begin(), selector.end(), [&labels](const auto& term) {
                          return labels->second.find(fmt::format("\n{}={}\n", term.first,
                                                                 term.second)) != std::string::npos;
                        });
    if (chosen) {
      return pod.address;
    }
  }
  return "";
}

void LocalKubelet::LeadServices(const std::vector<Object>& services) {
  std::set<std::string> there;
  for (const Object& service : services) {
    const Document json = ParseJsonObject(service.json, "a Service").value();
    there.insert(service.uid);
    {
      const std::lock_guard lock(mutex_);
      selectors_[service.uid] = TextsOf(json, {"spec", "selector"});
    }
    if (!proxies_.contains(service.uid)) {
      int port = 0;
      for (const Value& each : ArrayIn(json, {"spec", "ports"})) {
        port = static_cast<int>(NumberIn(each, {"port"}));
      }
      proxies_[service.uid] = std::make_unique<ServiceProxy>(
          std::string(TextIn(json, {"spec", "clusterIP"})), port, [this, uid = service.uid] {
            std::map<std::string, std::string> selector;
            {
              const std::lock_guard lock(mutex_);
              selector = selectors_[uid];
            }
            return TargetOf(selector);
          });
    }
  }
  std::erase_if(proxies_, [&there](const auto& proxy) { return !there.contains(proxy.first); });
}

}  // namespace sluice::k8s
