#include <utility>

#include "elastic/transport/status_codec_internal.h"
#include "executor/jobs/progress_codec_internal.h"
#include "executor/local/job_cluster_codec_internal.h"

namespace sluice::executor {
namespace {

// An unknown class counts as a failure.
elastic::ExitClass ExitClassOf(int number) {
  return number >= 0 && number <= static_cast<int>(elastic::ExitClass::kKilledForMemory)
             ? static_cast<elastic::ExitClass>(number)
             : elastic::ExitClass::kApplication;
}
elastic::FleetEvent::Kind KindOf(int number) {
  return number >= 0 && number <= static_cast<int>(elastic::FleetEvent::Kind::kWaiting)
             ? static_cast<elastic::FleetEvent::Kind>(number)
             : elastic::FleetEvent::Kind::kExited;
}

}  // namespace

elastic::Role RoleOf(int number) {
  return number >= 0 && number <= static_cast<int>(elastic::Role::kParameterServer)
             ? static_cast<elastic::Role>(number)
             : elastic::Role::kWorker;
}

FinishRequest ToProto(const JobEnd& end) {
  FinishRequest proto;
  if (end.report.ok()) {
    const TrainReport& report = end.report.value();
    FinishRequest::Trained* trained = proto.mutable_trained();
    trained->set_schema(report.version.schema);
    trained->set_name(report.version.name);
    trained->set_version(report.version.version);
    trained->set_type(report.version.type);
    trained->set_loss(report.loss);
    trained->set_rows(report.rows);
    trained->set_epochs(report.epochs);
    trained->set_seconds(report.seconds);
    WriteMetrics(report.metrics, trained->mutable_metrics());
  } else {
    elastic::ToProto(end.report.status(), proto.mutable_failed());
  }
  proto.set_rows_read(end.rows_read);
  proto.set_rows_trained(end.rows_trained);
  proto.set_rows_retried(end.rows_retried);
  proto.set_rows_skipped(end.rows_skipped);
  return proto;
}

JobEnd FromProto(const FinishRequest& proto) {
  JobEnd end{Internal("a master ended its job and did not say how"), proto.rows_read(),
             proto.rows_trained(), proto.rows_retried(), proto.rows_skipped()};
  if (proto.has_trained()) {
    const FinishRequest::Trained& trained = proto.trained();
    TrainReport report;
    report.version.schema = trained.schema();
    report.version.name = trained.name();
    report.version.version = trained.version();
    report.version.type = trained.type();
    report.loss = trained.loss();
    report.rows = trained.rows();
    report.epochs = trained.epochs();
    report.seconds = trained.seconds();
    report.metrics = ReadMetrics(trained.metrics());
    end.report = std::move(report);
  } else if (proto.failed().diagnostics_size() > 0) {
    end.report = elastic::FromProto(proto.failed());
  }
  return end;
}

LaunchRequest ToProto(const elastic::ProcessSpec& spec) {
  LaunchRequest proto;
  proto.set_role(static_cast<int>(spec.role));
  proto.set_name(spec.name);
  proto.set_config(spec.config);
  proto.set_secret(spec.secret);
  proto.set_cpu(spec.resources.cpu);
  proto.set_memory_bytes(spec.resources.memory_bytes);
  proto.set_priority(spec.priority);
  proto.set_incarnation(spec.incarnation.value());
  proto.set_server_index(spec.server_index.value());
  return proto;
}

elastic::ProcessSpec FromProto(const LaunchRequest& proto) {
  elastic::ProcessSpec spec;
  spec.role = RoleOf(proto.role());
  spec.name = proto.name();
  spec.config = proto.config();
  spec.secret = proto.secret();
  spec.resources = {proto.cpu(), proto.memory_bytes()};
  spec.priority = proto.priority();
  spec.incarnation = elastic::Incarnation(proto.incarnation());
  spec.server_index = elastic::ServerId(proto.server_index());
  return spec;
}

FleetEventProto ToProto(const elastic::FleetEvent& event) {
  FleetEventProto proto;
  proto.set_kind(static_cast<int>(event.kind));
  proto.set_name(event.name);
  proto.set_role(static_cast<int>(event.role));
  proto.set_exit_code(event.exit_code);
  proto.set_exit_class(static_cast<int>(event.exit_class));
  proto.set_message(event.message);
  proto.set_workers(event.workers);
  return proto;
}

elastic::FleetEvent FromProto(const FleetEventProto& proto) {
  elastic::FleetEvent event;
  event.kind = KindOf(proto.kind());
  event.name = proto.name();
  event.role = RoleOf(proto.role());
  event.exit_code = proto.exit_code();
  event.exit_class = ExitClassOf(proto.exit_class());
  event.message = proto.message();
  event.workers = proto.workers();
  return event;
}

}  // namespace sluice::executor
