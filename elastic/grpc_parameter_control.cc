// First: gRPC brings macros that have the names of ours.
#include "elastic/parameter_control.h"

#include <fmt/core.h>

#include "elastic/elastic.grpc.pb.h"
#include "elastic/partition.h"
#include "elastic/wire_internal.h"

namespace sluice::elastic {
namespace {

// A model is exported, and a checkpoint written, as a whole; it may be large.
constexpr auto kExportDeadline = std::chrono::minutes(10);

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

// One try: who calls knows better than this what to do when a server is gone.
Status CallOnce(
    const std::string& token, uint64_t term, const std::string& address,
    const std::stop_token& stop,
    const std::function<grpc::Status(ParameterService::Stub*, grpc::ClientContext*)>& call) {
  const auto stub = ParameterService::NewStub(OpenChannel(address));
  grpc::ClientContext context;
  Prepare(&context, token);
  context.AddMetadata(kTermKey, fmt::format("{}", term));
  const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
  const grpc::Status status = call(stub.get(), &context);
  const std::string name = fmt::format("parameter server at {}", address);
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return Unavailable(fmt::format("{} does not answer", name));
  }
  return FromGrpc(status, name);
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
  return CallOnce(token_, term_, address, stop_, [&](auto* stub, grpc::ClientContext* context) {
    InstallReply reply;
    return stub->Install(context, request, &reply);
  });
}

Status ParameterControl::Fill(const std::string& address, uint32_t partition, ServerId to,
                              const std::string& to_address) const {
  FillRequest request;
  request.set_partition(partition);
  request.set_server(to);
  request.set_address(to_address);
  return CallOnce(token_, term_, address, stop_, [&](auto* stub, grpc::ClientContext* context) {
    FillReply reply;
    return stub->Fill(context, request, &reply);
  });
}

Status ParameterControl::Snapshot(const std::string& address,
                                  const std::vector<uint32_t>& partitions) const {
  SnapshotRequest request;
  request.mutable_partitions()->Add(partitions.begin(), partitions.end());
  return CallOnce(token_, term_, address, stop_, [&](auto* stub, grpc::ClientContext* context) {
    SnapshotReply reply;
    return stub->Snapshot(context, request, &reply);
  });
}

Result<std::vector<CheckpointManifest::File>> ParameterControl::Write(
    const std::string& address, const std::string& directory) const {
  WriteRequest request;
  request.set_directory(directory);
  WriteReply reply;
  RETURN_IF_ERROR(
      CallOnce(token_, term_, address, stop_, [&](auto* stub, grpc::ClientContext* context) {
        context->set_deadline(std::chrono::system_clock::now() + kExportDeadline);
        return stub->Write(context, request, &reply);
      }));
  std::vector<CheckpointManifest::File> files;
  for (const CheckpointFileProto& file : reply.files()) {
    files.push_back(FromProto(file));
  }
  return files;
}

Status ParameterControl::Keep(const PartitionMap& map) const {
  KeepRequest request;
  request.set_map_version(map.version);
  for (const auto& [server, address] : map.servers) {
    RETURN_IF_ERROR(
        CallOnce(token_, term_, address, stop_, [&](auto* stub, grpc::ClientContext* context) {
          KeepReply reply;
          return stub->Keep(context, request, &reply);
        }));
  }
  return Status();
}

Result<models::NetworkWeights> ParameterControl::Collect(const PartitionMap& map,
                                                         const models::Network& network) const {
  std::vector<models::NetworkWeights> parts;
  for (uint32_t p = 0; p < map.primary.size(); ++p) {
    ExportRequest request;
    request.set_map_version(map.version);
    request.set_partition(p);
    std::string bytes;
    RETURN_IF_ERROR(CallOnce(token_, term_, map.servers.at(map.primary[p]), stop_,
                             [&](auto* stub, grpc::ClientContext* context) {
                               context->set_deadline(std::chrono::system_clock::now() +
                                                     kExportDeadline);
                               const auto reader = stub->Export(context, request);
                               ExportChunk chunk;
                               while (reader->Read(&chunk)) {
                                 bytes += chunk.weights();
                               }
                               return reader->Finish();
                             }));
    ASSIGN_OR_RETURN(models::NetworkWeights part, models::LoadWeights(bytes));
    parts.push_back(std::move(part));
  }
  return MergePartitions(parts, PartitionLayout(network, static_cast<uint32_t>(map.primary.size())),
                         network);
}

}  // namespace sluice::elastic
