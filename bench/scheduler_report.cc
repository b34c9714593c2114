// scheduler_report FOLDER [1 | 2]: EDL's two experiments in real time, on an API server with its
// scheduler and 133 nodes that are only objects, shared by a `sluice controller` process; beside
// what was published and what is simulated. Writes FOLDER/cluster_scheduler.md; FOLDER is docs/. 22
// minutes:
//   scripts/kubernetes with --controllers build/release/bench/scheduler_report docs
#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "bench/report_page.h"
#include "k8s/api_verbs.h"
#include "k8s/cluster_objects.h"
#include "k8s/credentials.h"
#include "k8s/training_job.h"
#include "tests/k8s/scheduled_cluster.h"
#include "tests/simulation/cluster_experiments.h"

extern char** environ;

namespace sluice::elastic {
namespace {

constexpr char kNamespace[] = "edl";
constexpr char kControllersNamespace[] = "sluice";

[[noreturn]] void Die(const std::string& why) {
  fmt::print(stderr, "scheduler_report: {}\n", why);
  std::exit(1);
}

void Run(const std::string& command) {
  if (std::system(command.c_str()) != 0) {
    Die(command);
  }
}

// As an administrator: the resource TrainingJob, the priority classes, two namespaces.
void Prepare(const std::string& kubeconfig) {
  const std::string folder = std::filesystem::temp_directory_path() / "scheduler-report";
  const std::string kubectl = fmt::format("kubectl --kubeconfig {} ", kubeconfig);
  Run(fmt::format("{} k8s manifests --namespace {} --image sluice --into {} >/dev/null",
                  SLUICE_BINARY, kControllersNamespace, folder));
  for (const char* const file : {"namespace", "training_job", "classes"}) {
    Run(fmt::format("{} apply -f {}/{}.yaml >/dev/null", kubectl, folder, file));
  }
  Run(kubectl + "wait --for=condition=Established --timeout=30s crd/trainingjobs.training.sluice");
  Run(fmt::format("{} create namespace {}", kubectl, kNamespace));
  // Until its account is there.
  Run(
      fmt::format("for i in $(seq 100); do {} -n {} get serviceaccount default >/dev/null 2>&1 && "
                  "{} get tj >/dev/null 2>&1 && exit 0; sleep 0.2; done; exit 1",
                  kubectl, kNamespace, kubectl));
  std::filesystem::remove_all(folder);
}

// `sluice controller`.
class ControllerProcess {
 public:
  explicit ControllerProcess(const std::string& kubeconfig) {
    setenv("KUBECONFIG", kubeconfig.c_str(), 1);
    std::string program = SLUICE_BINARY, verb = "controller",
                where = fmt::format("--namespace={}", kControllersNamespace);
    char* const arguments[] = {program.data(), verb.data(), where.data(), nullptr};
    if (posix_spawn(&pid_, program.c_str(), nullptr, nullptr, arguments, environ) != 0) {
      Die("the controller does not start");
    }
  }
  ~ControllerProcess() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  ControllerProcess(const ControllerProcess&) = delete;
  ControllerProcess& operator=(const ControllerProcess&) = delete;

  double CpuSeconds() const {
    std::ifstream file(fmt::format("/proc/{}/stat", pid_));
    std::string text{std::istreambuf_iterator<char>(file), {}};
    std::istringstream fields(text.substr(text.rfind(')') + 2));
    std::string skipped;
    for (int i = 0; i < 11; ++i) {
      fields >> skipped;
    }
    double user = 0, system = 0;
    fields >> user >> system;
    return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  double PeakMegabytes() const {
    std::ifstream file(fmt::format("/proc/{}/status", pid_));
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("VmHWM:")) {
        return std::stod(line.substr(6)) / 1024;
      }
    }
    return 0;
  }

 private:
  pid_t pid_ = 0;
};

struct Seen {
  ExperimentResult result;
  double controller_megabytes = 0, controller_cores = 0;
  uint64_t starts = 0, preempted = 0;
  size_t pods = 0;
  k8s::ScheduledCluster::Wait wait;
};

void Forget(k8s::ApiClient& client) {
  using k8s::Resource;
  const Resource deployments{"apps", "v1", "deployments"};
  std::vector<k8s::ApiRequest> requests;
  for (const Resource& resource : {deployments, k8s::kTrainingJobs, k8s::kPods, k8s::kNodes}) {
    const bool pods = resource.plural == k8s::kPods.plural;
    const std::string where = resource.plural == k8s::kNodes.plural ? "" : kNamespace;
    for (int round = 0; round < 50; ++round) {
      requests.clear();
      for (const k8s::Object& object :
           k8s::ListObjects(client, {resource, where, ""}, {}).objects) {
        k8s::ApiRequest request;
        request.verb = k8s::Verb::kDelete;
        request.resource = resource;
        request.namespace_name = where;
        request.name = object.name;
        request.body = pods ? R"({"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0})"
                            : R"({"kind":"DeleteOptions","apiVersion":"v1",)"
                              R"("propagationPolicy":"Background"})";
        requests.push_back(std::move(request));
      }
      if (requests.empty()) {
        break;
      }
      client.CallAll(requests, {});
    }
  }
}

Seen Try(k8s::ApiClient& client, const std::string& kubeconfig,
         ExperimentResult (*experiment)(SharedCluster&, uint32_t)) {
  Seen seen;
  {
    const ControllerProcess controller(kubeconfig);
    k8s::ScheduledCluster cluster(client, {kNamespace});
    const double before = controller.CpuSeconds();
    seen.result = experiment(cluster, kEdlMostWorkers);
    seen.controller_cores = (controller.CpuSeconds() - before) / cluster.now();
    seen.controller_megabytes = controller.PeakMegabytes();
    seen.starts = cluster.starts();
    seen.preempted = cluster.preempted();
    seen.pods = cluster.pods();
    seen.wait = cluster.MeanWait();
  }
  Forget(client);
  return seen;
}

ExperimentResult Simulated(ExperimentResult (*experiment)(const WorldOptions&)) {
  WorldOptions options;
  options.placing = WorldOptions::Placing::kScheduler;
  options.master_first = true;
  return experiment(options);
}

int Main(const std::filesystem::path& folder, const std::string& only) {
  const char* const kubeconfig = std::getenv("SLUICE_TEST_KUBERNETES");
  if (kubeconfig == nullptr || std::getenv("SLUICE_TEST_SCHEDULER") == nullptr) {
    Die("needs a scheduler: scripts/kubernetes with --controllers");
  }
  const SteadyClock clock;
  auto credentials = k8s::CredentialsFromKubeconfig({kubeconfig}, "certificate", clock);
  if (!credentials.ok()) {
    Die(credentials.status().ToString());
  }
  k8s::ApiClient client(**credentials, k8s::ApiOptions(), clock);
  Prepare(kubeconfig);
  Report report(folder, "cluster_scheduler");
  report.Text(
      "# EDL's experiments beside a real scheduler\n"
      "Written by `scripts/kubernetes with --controllers build/release/bench/scheduler_report "
      "docs`. Kubernetes' own API server, scheduler and controllers (1.20.2) and a `sluice "
      "controller` process, in real time, on 133 nodes that are only objects. Played are the "
      "kubelets (pods start in 3 to 10 s and end in 2 s) and the masters of the jobs. Services "
      "have Kubernetes' default priority, masters and servers `sluice-high`, workers "
      "`sluice-low`. [cluster.md](cluster.md) describes the experiments; simulated: the same with "
      "one seed, except that a job has no more than its first two workers before its master runs. "
      "One run on two processors, which the control plane shared.\n\n"
      "| | real scheduler | simulated | EDL | EDL fixed | goal |\n|---|---|---|---|---|---|\n");
  std::vector<std::pair<std::string, Seen>> seen;
  if (only != "2") {
    const Seen one = Try(client, kubeconfig, PlayEdlCase1);
    const ExperimentResult simulated = Simulated(RunEdlCase1);
    report.Row("case 1: a job waits for its first worker (mean, s)",
               {Number(one.result.pending_seconds, 1), Number(simulated.pending_seconds, 1), "47.2",
                "308.5", "6"});
    report.Row("case 1: Jain's index of running workers, 400-500 s",
               {Number(one.result.jain, 3), Number(simulated.jain, 3), "0.437", "0.298", "0.99"});
    report.Row("case 1: processors used, 300-500 s",
               {Percent(one.result.utilisation), Percent(simulated.utilisation), "86.3 %", "88.7 %",
                "88.7 %"});
    report.Row("case 1: jobs below their minimum",
               {Number(one.result.jobs_below_minimum, 1), Number(simulated.jobs_below_minimum, 1),
                "3.5", "14", "0"});
    seen.emplace_back("1", one);
  }
  if (only != "1") {
    const Seen two = Try(client, kubeconfig, PlayEdlCase2);
    const ExperimentResult simulated = Simulated(RunEdlCase2);
    report.Row("case 2: Nginx short of what it wants, while that grows",
               {Percent(two.result.service_short), Percent(simulated.service_short), "23.3 %",
                "2.6 %", "2.6 %"});
    report.Row("case 2: all 400 Nginx run again after (s)",
               {Number(two.result.service_back_seconds, 0),
                Number(simulated.service_back_seconds, 0), "not in 118", "14", "15"});
    report.Row("case 2: processors used", {Percent(two.result.utilisation),
                                           Percent(simulated.utilisation), "83.7 %", "62.8 %", ""});
    seen.emplace_back("2", two);
  }
  report.Text(
      "\n| the controller | most memory (MB) | of a core | pods at the end | workers started | "
      "workers preempted |\n|---|---|---|---|---|---|\n");
  for (const auto& [number, each] : seen) {
    report.Row("case " + number,
               {Number(each.controller_megabytes, 0), Percent(each.controller_cores),
                fmt::format("{}", each.pods), fmt::format("{}", each.starts),
                fmt::format("{}", each.preempted)});
  }
  report.Row("goal", {"100", "5 %", "", "", ""});
  for (const auto& [number, each] : seen) {
    report.Text(fmt::format(
        "\nCase {}: of a job's wait for its first worker (mean), {:.1f} s pass until its master "
        "has a node, another {:.1f} s until a worker has one, and {:.1f} s until that runs. "
        "Another "
        "{:.1f} s later its master, whose pod started at the same time, runs, too, and it "
        "trains.\n",
        number, each.wait.master_placed, each.wait.worker_placed, each.wait.worker_runs,
        each.wait.trains));
  }
  for (const auto& [number, each] : seen) {
    report.Plot("scheduler_case_" + number,
                fmt::format("EDL, case {}, beside Kubernetes' scheduler", number),
                each.result.trace, "processors used", number == "2", true);
  }
  report.Write();
  return 0;
}

}  // namespace
}  // namespace sluice::elastic

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3 || !std::filesystem::is_directory(argv[1])) {
    fmt::print(stderr, "scheduler_report FOLDER [1 | 2]: writes FOLDER/cluster_scheduler.md\n");
    return 2;
  }
  return sluice::elastic::Main(argv[1], argc == 3 ? argv[2] : "");
}
