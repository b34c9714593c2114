// First: gRPC defines macros with the names of ours.
#include "elastic/rpc/parameter_control.h"

#include <fmt/core.h>

#include <algorithm>
#include <future>
#include <map>

#include "base/mutex.h"
#include "catalog/model_record.h"
#include "elastic/parameters/partition.h"
#include "elastic/rpc/elastic.grpc.pb.h"
#include "elastic/rpc/wire_internal.h"

namespace sluice::elastic {
namespace {

InstallRequest::Phase ToProto(ParameterControl::Phase phase) {
  switch (phase) {
    case ParameterControl::Phase::kFreeze:
      return InstallRequest::FREEZE;
    case ParameterControl::Phase::kAdopt:
      return InstallRequest::ADOPT;
    case ParameterControl::Phase::kCreate:
      return InstallRequest::CREATE;
    case ParameterControl::Phase::kRelease:
      break;
  }
  return InstallRequest::RELEASE;
}

// How often a waiting call checks whether to give up.
constexpr auto kPollInterval = std::chrono::milliseconds(100);

Status FromCall(const grpc::Status& status, const std::string& address) {
  const std::string name = fmt::format("parameter server at {}", address);
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
      status.error_code() == grpc::StatusCode::CANCELLED) {
    return Unavailable(fmt::format("{} does not answer", name));
  }
  return FromGrpc(status, name);
}

using Done = std::function<void(grpc::Status)>;
using AsyncStub = std::remove_pointer_t<decltype(std::declval<ParameterService::Stub>().async())>;
using Begin = std::function<void(AsyncStub*, grpc::ClientContext*, const Done&)>;
using Call = std::function<grpc::Status(ParameterService::Stub*, grpc::ClientContext*)>;

}  // namespace

// A master makes some hundred calls in a row to fill or to collect: a connection for each would
// take longer than the calls, with TLS above all.
struct ParameterControl::Calls {
  explicit Calls(const ParameterControl& of) : control(of) {}

  // One attempt: the caller knows better what to do when a server is gone.
  Status Once(const std::string& address, const Call& call) {
    const std::shared_ptr<ParameterService::Stub> stub = StubOf(address);
    grpc::ClientContext context;
    Prepare(&context);
    const std::stop_callback cancel(control.stop_, [&context] { context.TryCancel(); });
    return Ended(address, call(stub.get(), &context));
  }

  // The same, given up when the control's owner says so.
  Status OrGiveUp(const std::string& address, std::chrono::seconds deadline, const Begin& begin) {
    const std::shared_ptr<ParameterService::Stub> stub = StubOf(address);
    grpc::ClientContext context;
    Prepare(&context);
    context.set_deadline(std::chrono::system_clock::now() + deadline);
    const auto promise = std::make_shared<std::promise<grpc::Status>>();
    std::future<grpc::Status> answer = promise->get_future();
    begin(stub->async(), &context,
          [promise](grpc::Status status) { promise->set_value(std::move(status)); });
    while (answer.wait_for(kPollInterval) != std::future_status::ready) {
      if (control.stop_.stop_requested() ||
          (control.should_give_up_ && control.should_give_up_())) {
        context.TryCancel();
      }
    }
    return Ended(address, answer.get());
  }

 private:
  void Prepare(grpc::ClientContext* context) const {
    elastic::Prepare(context, control.key_.token);
    context->AddMetadata(kTermKey, fmt::format("{}", control.term_));
  }
  std::shared_ptr<ParameterService::Stub> StubOf(const std::string& address) {
    const MutexLock lock(mutex);
    std::shared_ptr<ParameterService::Stub>& stub = stubs[address];
    if (stub == nullptr) {
      stub = ParameterService::NewStub(OpenChannel(address, control.key_));
    }
    return stub;
  }
  Status Ended(const std::string& address, const grpc::Status& status) {
    if (!status.ok()) {
      const MutexLock lock(mutex);
      stubs.erase(address);  // the next call connects anew
    }
    return FromCall(status, address);
  }

  const ParameterControl& control;
  Mutex mutex;
  std::map<std::string, std::shared_ptr<ParameterService::Stub>> stubs GUARDED_BY(mutex);
};

ParameterControl::ParameterControl(JobKey key, Term term, std::stop_token stop,
                                   ShouldGiveUp should_give_up)
    : key_(std::move(key)),
      term_(term),
      stop_(std::move(stop)),
      should_give_up_(std::move(should_give_up)),
      calls_(std::make_unique<Calls>(*this)) {}

ParameterControl::~ParameterControl() = default;

Status ParameterControl::Install(const std::string& address, const PartitionMap& map, Phase phase,
                                 const CheckpointDirectory::Found* restore) const {
  InstallRequest request;
  ToProto(map, request.mutable_map());
  request.set_phase(ToProto(phase));
  if (restore != nullptr) {
    request.set_restore_from(restore->path);
    for (const CheckpointManifest::File& file : restore->manifest.files) {
      ToProto(file, request.add_files());
    }
  }
  InstallReply reply;
  return calls_->OrGiveUp(address, phase == Phase::kCreate ? kBulkDeadline : kCallDeadline,
                          [&](auto* stub, grpc::ClientContext* context, const Done& done) {
                            stub->Install(context, &request, &reply, done);
                          });
}

Status ParameterControl::Fill(const std::string& address, uint32_t partition, ServerId to,
                              const std::string& to_address) const {
  FillRequest request;
  request.set_partition(partition);
  request.set_server(to.value());
  request.set_address(to_address);
  FillReply reply;
  return calls_->OrGiveUp(address, kBulkDeadline,
                          [&](auto* stub, grpc::ClientContext* context, const Done& done) {
                            stub->Fill(context, &request, &reply, done);
                          });
}

Status ParameterControl::Snapshot(const std::string& address,
                                  const std::vector<uint32_t>& partitions) const {
  SnapshotRequest request;
  request.mutable_partitions()->Add(partitions.begin(), partitions.end());
  SnapshotReply reply;
  return calls_->OrGiveUp(address, kCallDeadline,
                          [&](auto* stub, grpc::ClientContext* context, const Done& done) {
                            stub->Snapshot(context, &request, &reply, done);
                          });
}

Result<std::vector<CheckpointManifest::File>> ParameterControl::Write(
    const std::string& address, const std::string& directory) const {
  WriteRequest request;
  request.set_directory(directory);
  WriteReply reply;
  RETURN_IF_ERROR(calls_->OrGiveUp(address, kBulkDeadline,
                                   [&](auto* stub, grpc::ClientContext* context, const Done& done) {
                                     stub->Write(context, &request, &reply, done);
                                   }));
  std::vector<CheckpointManifest::File> files;
  for (const CheckpointFileProto& file : reply.files()) {
    files.push_back(FromProto(file));
  }
  return files;
}

Result<std::string> ParameterControl::Keep(const PartitionMap& map, const KeepOrder& order) const {
  KeepRequest request;
  request.set_map_version(map.version.value());
  request.set_number(order.number);
  request.mutable_versions()->Add(order.versions.begin(), order.versions.end());
  std::vector<std::string> digests(map.primary.size());
  for (const auto& [server, address] : map.servers) {
    KeepReply reply;
    RETURN_IF_ERROR(calls_->Once(address, [&](auto* stub, grpc::ClientContext* context) {
      return stub->Keep(context, request, &reply);
    }));
    for (int i = 0; i < std::min(reply.partitions_size(), reply.digests_size()); ++i) {
      if (reply.partitions(i) < digests.size()) {
        digests[reply.partitions(i)] = reply.digests(i);
      }
    }
  }
  for (size_t partition = 0; partition < digests.size(); ++partition) {
    if (digests[partition].empty()) {
      return Internal(fmt::format("no server keeps the best weights of partition {}", partition));
    }
  }
  return DigestOf(digests);
}

Result<models::NetworkWeights> ParameterControl::Collect(const PartitionMap& map,
                                                         const models::Network& network,
                                                         const std::string& digest) const {
  std::vector<models::NetworkWeights> parts;
  std::vector<std::string> digests;
  for (uint32_t p = 0; p < map.primary.size(); ++p) {
    ExportRequest request;
    request.set_map_version(map.version.value());
    request.set_partition(p);
    std::string bytes;
    RETURN_IF_ERROR(
        calls_->Once(map.servers.at(map.primary[p]), [&](auto* stub, grpc::ClientContext* context) {
          context->set_deadline(std::chrono::system_clock::now() + kBulkDeadline);
          const auto reader = stub->Export(context, request);
          ExportChunk chunk;
          while (reader->Read(&chunk)) {
            bytes += chunk.weights();
          }
          return reader->Finish();
        }));
    if (!digest.empty()) {
      digests.push_back(catalog::Sha256Hex(bytes));
    }
    ASSIGN_OR_RETURN(models::NetworkWeights part, models::LoadWeights(bytes));
    parts.push_back(std::move(part));
  }
  RETURN_IF_ERROR(CheckDigest(digest.empty() ? digest : DigestOf(digests), digest));
  return MergePartitions(parts, PartitionLayout(network, static_cast<uint32_t>(map.primary.size())),
                         network);
}

}  // namespace sluice::elastic
