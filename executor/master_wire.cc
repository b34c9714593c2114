#include <utility>

#include "base/error_code.h"
#include "executor/master_wire_internal.h"

namespace sluice::executor {
namespace {

void WriteMetrics(const std::vector<std::pair<std::string, double>>& metrics,
                  google::protobuf::RepeatedPtrField<MetricValue>* to) {
  for (const auto& [name, value] : metrics) {
    MetricValue* metric = to->Add();
    metric->set_name(name);
    metric->set_value(value);
  }
}

std::vector<std::pair<std::string, double>> ReadMetrics(
    const google::protobuf::RepeatedPtrField<MetricValue>& from) {
  std::vector<std::pair<std::string, double>> metrics;
  for (const MetricValue& metric : from) {
    metrics.emplace_back(metric.name(), metric.value());
  }
  return metrics;
}

// Of messages whose sender may be of another build, or mad: what is not known is a worker that has
// ended badly.
elastic::Role RoleOf(int number) {
  return number >= 0 && number <= static_cast<int>(elastic::Role::kParameterServer)
             ? static_cast<elastic::Role>(number)
             : elastic::Role::kWorker;
}
elastic::ExitClass ExitClassOf(int number) {
  return number >= 0 && number <= static_cast<int>(elastic::ExitClass::kHardware)
             ? static_cast<elastic::ExitClass>(number)
             : elastic::ExitClass::kApplication;
}
elastic::FleetEvent::Kind KindOf(int number) {
  return number >= 0 && number <= static_cast<int>(elastic::FleetEvent::Kind::kGranted)
             ? static_cast<elastic::FleetEvent::Kind>(number)
             : elastic::FleetEvent::Kind::kExited;
}

}  // namespace

elastic::Progress FromMessage(const ProgressMessage& message) {
  elastic::Progress progress;
  progress.rows_done = message.rows_done();
  progress.rows_read = message.rows_read();
  progress.rows_total = message.rows_total();
  progress.rows_per_second = message.rows_per_second();
  progress.epoch = elastic::Epoch(message.epoch());
  progress.epochs = message.epochs();
  progress.loss = message.loss();
  progress.metrics = ReadMetrics(message.metrics());
  progress.workers = message.workers();
  progress.seconds_left = message.seconds_left();
  return progress;
}

MasterMessage ToMessage(const elastic::Progress& progress) {
  MasterMessage message;
  ProgressMessage* to = message.mutable_progress();
  to->set_rows_done(progress.rows_done);
  to->set_rows_read(progress.rows_read);
  to->set_rows_total(progress.rows_total);
  to->set_rows_per_second(progress.rows_per_second);
  to->set_epoch(progress.epoch.value());
  to->set_epochs(progress.epochs);
  to->set_loss(progress.loss);
  WriteMetrics(progress.metrics, to->mutable_metrics());
  to->set_workers(progress.workers);
  to->set_seconds_left(progress.seconds_left);
  return message;
}

MasterMessage ToMessage(const TrainReport& report, const catalog::Job& job) {
  MasterMessage message;
  OutcomeMessage* to = message.mutable_outcome();
  to->set_schema(report.version.schema);
  to->set_name(report.version.name);
  to->set_version(report.version.version);
  to->set_type(report.version.type);
  to->set_loss(report.loss);
  to->set_rows(report.rows);
  to->set_epochs(report.epochs);
  to->set_seconds(report.seconds);
  WriteMetrics(report.metrics, to->mutable_metrics());
  to->set_rows_read(job.rows_read);
  to->set_rows_trained(job.rows_trained);
  to->set_rows_retried(job.rows_retried);
  to->set_rows_skipped(job.rows_skipped);
  return message;
}

void ToMessage(const Status& error, ErrorMessage* message) {
  for (const Diagnostic& diagnostic : error.diagnostics()) {
    DiagnosticMessage* to = message->add_diagnostics();
    to->set_code(static_cast<int>(diagnostic.code));
    to->set_sqlstate(diagnostic.sqlstate);
    to->set_message(diagnostic.message);
    to->set_detail(diagnostic.detail);
    to->set_hint(diagnostic.hint);
    to->set_begin(diagnostic.span.begin);
    to->set_end(diagnostic.span.end);
  }
}

Status FromMessage(const ErrorMessage& error) {
  Status status;
  for (const DiagnosticMessage& diagnostic : error.diagnostics()) {
    status.Add(Status(ErrorCode(diagnostic.code()), diagnostic.message())
                   .SqlState(diagnostic.sqlstate())
                   .Detail(diagnostic.detail())
                   .Hint(diagnostic.hint())
                   .At({diagnostic.begin(), diagnostic.end()}));
  }
  return status;
}

TrainReport FromMessage(const OutcomeMessage& outcome, int64_t job) {
  TrainReport report;
  report.version.schema = outcome.schema();
  report.version.name = outcome.name();
  report.version.version = outcome.version();
  report.version.type = outcome.type();
  report.version.job = job;
  report.loss = outcome.loss();
  report.rows = outcome.rows();
  report.epochs = outcome.epochs();
  report.seconds = outcome.seconds();
  report.metrics = ReadMetrics(outcome.metrics());
  return report;
}

LaunchMessage ToMessage(const elastic::ProcessSpec& spec) {
  LaunchMessage message;
  message.set_role(static_cast<int>(spec.role));
  message.set_name(spec.name);
  message.set_config(spec.config);
  message.set_secret(spec.secret);
  message.set_cpu(spec.resources.cpu);
  message.set_memory_bytes(spec.resources.memory_bytes);
  message.set_priority(spec.priority);
  message.set_incarnation(spec.incarnation.value());
  message.set_server_index(spec.server_index);
  return message;
}

elastic::ProcessSpec FromMessage(const LaunchMessage& message) {
  elastic::ProcessSpec spec;
  spec.role = RoleOf(message.role());
  spec.name = message.name();
  spec.config = message.config();
  spec.secret = message.secret();
  spec.resources = {message.cpu(), message.memory_bytes()};
  spec.priority = message.priority();
  spec.incarnation = elastic::Incarnation(message.incarnation());
  spec.server_index = message.server_index();
  return spec;
}

EventMessage ToMessage(const elastic::FleetEvent& event) {
  EventMessage message;
  message.set_kind(static_cast<int>(event.kind));
  message.set_name(event.name);
  message.set_role(static_cast<int>(event.role));
  message.set_exit_code(event.exit_code);
  message.set_exit_class(static_cast<int>(event.exit_class));
  message.set_message(event.message);
  message.set_workers(event.workers);
  return message;
}

elastic::FleetEvent FromMessage(const EventMessage& message) {
  elastic::FleetEvent event;
  event.kind = KindOf(message.kind());
  event.name = message.name();
  event.role = RoleOf(message.role());
  event.exit_code = message.exit_code();
  event.exit_class = ExitClassOf(message.exit_class());
  event.message = message.message();
  event.workers = message.workers();
  return event;
}

void ToConfig(const elastic::JobEndpoint& endpoint, MasterConfig* config) {
  config->set_address(endpoint.address);
  config->set_token(endpoint.token);
  config->set_term(static_cast<uint64_t>(endpoint.term.value()));
  config->set_workers(endpoint.workers);
  config->clear_living();
  for (const elastic::LivingProcess& process : endpoint.living) {
    LivingProcessMessage* to = config->add_living();
    to->set_role(static_cast<int>(process.role));
    to->set_name(process.name);
    to->set_incarnation(process.incarnation.value());
    to->set_server_index(process.server_index);
  }
}

elastic::JobEndpoint EndpointOf(const MasterConfig& config, std::string job_name) {
  elastic::JobEndpoint endpoint(std::move(job_name));
  endpoint.address = config.address();
  endpoint.token = config.token();
  endpoint.term = elastic::Term(static_cast<int64_t>(config.term()));
  endpoint.workers = config.workers();
  for (const LivingProcessMessage& from : config.living()) {
    endpoint.living.push_back({RoleOf(from.role()), from.name(),
                               elastic::Incarnation(from.incarnation()), from.server_index()});
  }
  return endpoint;
}

}  // namespace sluice::executor
