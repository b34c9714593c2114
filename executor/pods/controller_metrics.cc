#include "executor/pods/controller_metrics.h"

namespace sluice::executor {

void AddFigures(const k8s::ControllerFigures& figures, elastic::MetricsText& text) {
  using Kind = elastic::MetricsText::Kind;
  const auto add = [&text](const char* name, Kind kind, const char* help, auto value) {
    text.Add(name, kind, help, {}, static_cast<double>(value));
  };
  add("sluice_controller_leads", Kind::kGauge, "1: this controller acts.", figures.leads ? 1 : 0);
  add("sluice_controller_nodes", Kind::kGauge, "Nodes of the cluster.", figures.nodes);
  add("sluice_controller_processors", Kind::kGauge, "Processors that the nodes have for pods.",
      figures.cpu);
  for (const auto& [by, cpu] :
       {std::pair("services", figures.services_cpu), std::pair("jobs", figures.jobs_cpu)}) {
    text.Add("sluice_controller_processors_used", Kind::kGauge,
             "Processors that pods with a node request.", {{"by", by}}, cpu);
  }
  add("sluice_controller_jobs", Kind::kGauge, "TrainingJobs that share the cluster.",
      figures.jobs.size());
  for (const auto& job : figures.jobs) {
    text.Add("sluice_controller_granted_workers", Kind::kGauge, "Workers that a job may have.",
             {{"namespace", job.namespace_name}, {"job", job.name}}, job.granted);
  }
  for (const auto& job : figures.jobs) {
    text.Add("sluice_controller_running_workers", Kind::kGauge,
             "Workers of a job that have a node.",
             {{"namespace", job.namespace_name}, {"job", job.name}}, job.running);
  }
  add("sluice_controller_waiting_pods", Kind::kGauge,
      "Pods of services that wait for room that workers could make.", figures.waiting_pods);
  text.Add("sluice_controller_pending_seconds",
           "How long such pods waited until they had room or were gone.", figures.pending_seconds);
  text.Add("sluice_controller_decision_seconds", "How long decisions took.",
           figures.decision_seconds);
  add("sluice_controller_grants_total", Kind::kCounter, "Grants written.", figures.grants);
  add("sluice_controller_failed_grants_total", Kind::kCounter, "Grants that were not written.",
      figures.failed_grants);
}

}  // namespace sluice::executor
