#include <memory>

#include "catalog/data_source.h"
#include "elastic/job/job_checkpoints.h"
#include "elastic/job/process_access.h"
#include "elastic/job/process_configs_internal.h"
#include "elastic/job/training_job.h"
#include "elastic/master/master_service.h"
#include "elastic/rpc/job_endpoint.h"
#include "elastic/rpc/wire_internal.h"
#include "models/model.h"

namespace sluice::elastic {
namespace {

constexpr char kListenHost[] = "127.0.0.1";

std::shared_ptr<const std::string> Serialized(const ProcessConfig& config) {
  return std::make_shared<const std::string>(config.SerializeAsString());
}

}  // namespace

void ProcessConfigs::Fill(MasterServer& master) {
  const bool all_reduce = job_.plan.strategy().kind() == plan::Strategy::ALL_REDUCE;
  *server_.mutable_plan() = job_.plan;
  worker_ = server_;
  server_.set_partitions(partitions_);
  if (job_.base != nullptr) {
    const auto weights = std::make_shared<const std::string>(models::SaveWeights(*job_.base));
    (all_reduce ? worker_ : server_).set_base_bytes(weights->size());
    master.OfferBase(weights);
  }
  if (all_reduce && job_.checkpoints != nullptr && job_.checkpoints->restore().has_value()) {
    worker_.set_restore_from(job_.checkpoints->restore()->path);
    ToProto(job_.checkpoints->restore()->manifest.files.at(0), worker_.mutable_restore_file());
  }
  worker_.set_source_url(job_.source.url());
  *worker_.mutable_dataset() = job_.dataset;
  if (job_.validation != nullptr) {
    *worker_.mutable_validation() = *job_.validation;
  }
  if (job_.held) {
    worker_.set_holds_snapshot(true);
    master.HearHeld(job_.held);
  }
  if (job_.used) {
    master.HearUsed(job_.used);
  }
  const ProcessConfig access = AccessOf(endpoint_, master.address());
  if (endpoint_.configures) {
    offered_to_workers_ = Serialized(worker_);
    offered_to_servers_ = Serialized(server_);
    worker_ = server_ = access;
    return;
  }
  for (ProcessConfig* const config : {&worker_, &server_}) {
    config->MergeFrom(access);
    config->set_listen_host(kListenHost);
  }
}

void ProcessConfigs::Offer(MasterServer& master) const {
  if (endpoint_.configures) {
    master.OfferConfigs(offered_to_workers_, offered_to_servers_);
  }
}

std::string ProcessConfigs::ForWorker(const std::string& name, Incarnation incarnation) {
  worker_.set_name(name);
  worker_.set_incarnation(incarnation.value());
  return worker_.SerializeAsString();
}

std::string ProcessConfigs::ForServer(const std::string& name, ServerId server) {
  server_.set_name(name);
  server_.set_server_id(server.value());
  return server_.SerializeAsString();
}

}  // namespace sluice::elastic
