// First: gRPC defines macros with the names of ours.
#include "elastic/rpc/parameter_control.h"

#include <fmt/core.h>

#include <algorithm>
#include <future>

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

// One attempt: the caller knows better what to do when a server is gone.
Status CallOnce(
    const JobKey& key, Term term, const std::string& address, const std::stop_token& stop,
    const std::function<grpc::Status(ParameterService::Stub*, grpc::ClientContext*)>& call) {
  const auto stub = ParameterService::NewStub(OpenChannel(address, key));
  grpc::ClientContext context;
  Prepare(&context, key.token);
  context.AddMetadata(kTermKey, fmt::format("{}", term));
  const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
  return FromCall(call(stub.get(), &context), address);
}

using Done = std::function<void(grpc::Status)>;
using AsyncStub = std::remove_pointer_t<decltype(std::declval<ParameterService::Stub>().async())>;
using Begin = std::function<void(AsyncStub*, grpc::ClientContext*, const Done&)>;

// The same, given up when `should_give_up` says so.
Status CallOrGiveUp(const JobKey& key, Term term, const std::string& address,
                    const std::stop_token& stop,
                    const ParameterControl::ShouldGiveUp& should_give_up,
                    std::chrono::seconds deadline, const Begin& begin) {
  const auto stub = ParameterService::NewStub(OpenChannel(address, key));
  grpc::ClientContext context;
  Prepare(&context, key.token);
  context.AddMetadata(kTermKey, fmt::format("{}", term));
  context.set_deadline(std::chrono::system_clock::now() + deadline);
  const auto promise = std::make_shared<std::promise<grpc::Status>>();
  std::future<grpc::Status> answer = promise->get_future();
  begin(stub->async(), &context,
        [promise](grpc::Status status) { promise->set_value(std::move(status)); });
  while (answer.wait_for(kPollInterval) != std::future_status::ready) {
    if (stop.stop_requested() || (should_give_up && should_give_up())) {
      context.TryCancel();
    }
  }
  return FromCall(answer.get(), address);
}

}  // namespace

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
  return CallOrGiveUp(key_, term_, address, stop_, should_give_up_,
                      phase == Phase::kCreate ? kBulkDeadline : kCallDeadline,
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
  return CallOrGiveUp(key_, term_, address, stop_, should_give_up_, kBulkDeadline,
                      [&](auto* stub, grpc::ClientContext* context, const Done& done) {
                        stub->Fill(context, &request, &reply, done);
                      });
}

Status ParameterControl::Snapshot(const std::string& address,
                                  const std::vector<uint32_t>& partitions) const {
  SnapshotRequest request;
  request.mutable_partitions()->Add(partitions.begin(), partitions.end());
  SnapshotReply reply;
  return CallOrGiveUp(key_, term_, address, stop_, should_give_up_, kCallDeadline,
                      [&](auto* stub, grpc::ClientContext* context, const Done& done) {
                        stub->Snapshot(context, &request, &reply, done);
                      });
}

Result<std::vector<CheckpointManifest::File>> ParameterControl::Write(
    const std::string& address, const std::string& directory) const {
  WriteRequest request;
  request.set_directory(directory);
  WriteReply reply;
  RETURN_IF_ERROR(CallOrGiveUp(key_, term_, address, stop_, should_give_up_, kBulkDeadline,
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
    RETURN_IF_ERROR(
        CallOnce(key_, term_, address, stop_, [&](auto* stub, grpc::ClientContext* context) {
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
    RETURN_IF_ERROR(CallOnce(key_, term_, map.servers.at(map.primary[p]), stop_,
                             [&](auto* stub, grpc::ClientContext* context) {
                               context->set_deadline(std::chrono::system_clock::now() +
                                                     kBulkDeadline);
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
