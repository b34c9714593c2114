#include <memory>

#include "catalog/data_source.h"
#include "elastic/job/job_checkpoints.h"
#include "elastic/job/process_configs_internal.h"
#include "elastic/job/training_job.h"
#include "elastic/master/master_service.h"
#include "elastic/rpc/job_endpoint.h"
#include "elastic/rpc/wire_internal.h"
#include "models/model.h"

namespace sluice::elastic {
namespace {

constexpr char kListenHost[] = "127.0.0.1";

// Takes the large parts, which are fetched, out of a configuration; the rest is passed to each
// process.
std::shared_ptr<const std::string> TakeShared(ProcessConfig& config) {
  ProcessConfig shared;
  shared.mutable_plan()->Swap(config.mutable_plan());
  shared.mutable_dataset()->Swap(config.mutable_dataset());
  if (config.has_validation()) {
    shared.mutable_validation()->Swap(config.mutable_validation());
  }
  config.clear_plan();
  config.clear_dataset();
  config.clear_validation();
  config.set_configured_by_master(true);
  return std::make_shared<const std::string>(shared.SerializeAsString());
}

}  // namespace

void ProcessConfigs::Fill(MasterServer& master) {
  const bool all_reduce = job_.plan.strategy().kind() == plan::Strategy::ALL_REDUCE;
  server_.set_job(endpoint_.job_name);
  server_.set_token(endpoint_.key.token);
  server_.set_certificate(endpoint_.key.certificate);
  server_.set_private_key(endpoint_.key.private_key);
  server_.set_master_address(master.address());
  if (!endpoint_.configures) {  // otherwise each process has the whole configuration
    server_.set_listen_host(kListenHost);
  }
  *server_.mutable_plan() = job_.plan;
  worker_ = server_;
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
  if (endpoint_.configures) {
    master.OfferConfigs(TakeShared(worker_), TakeShared(server_));
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
