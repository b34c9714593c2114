#include <utility>

#include "elastic/transport/status_codec_internal.h"
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

FinishRequest ToProto(const Result<std::string>& answer) {
  FinishRequest proto;
  if (answer.ok()) {
    proto.set_answer(*answer);
  } else {
    elastic::ToProto(answer.status(), proto.mutable_failed());
  }
  return proto;
}

Result<std::string> FromProto(const FinishRequest& proto) {
  if (proto.has_answer()) {
    return proto.answer();
  }
  return proto.failed().diagnostics_size() > 0
             ? elastic::FromProto(proto.failed())
             : Internal("a master ended its job and did not say how");
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
