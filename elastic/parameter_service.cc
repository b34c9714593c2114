#include "elastic/parameter_service.h"

#include <fmt/core.h>

#include <algorithm>

#include "elastic/elastic.grpc.pb.h"
#include "elastic/wire_internal.h"

namespace sluice::elastic {
namespace {

// A pull for a step that is not open yet waits so long in the server; then the worker looks whether
// there are lanes without a holder.
constexpr double kStepWaitSeconds = 0.05;
// Export travels in pieces: no message is as large as a model may be.
constexpr size_t kExportChunkBytes = 4U << 20;
constexpr auto kShutdownGrace = std::chrono::milliseconds(200);

class Service final : public ParameterService::Service {
 public:
  Service(std::string token, const models::Network& network, const Placement& placement,
          ParameterShard& shard)
      : token_(std::move(token)), shard_(shard) {
    for (const models::DenseTensor& tensor : network.dense()) {
      const auto [begin, end] = placement.Slice(tensor.size());
      sizes_.push_back(end - begin);
      dense_size_ += end - begin;
    }
    for (const models::EmbeddingTable& table : network.tables()) {
      dimensions_.push_back(table.dimension);
    }
  }

  grpc::Status Exchange(grpc::ServerContext* context, const ExchangeRequest* request,
                        ExchangeReply* reply) override {
    const grpc::Status allowed = CheckToken(*context, token_);
    if (!allowed.ok()) {
      return allowed;
    }
    if (request->has_push()) {
      const Status pushed = Push(request->push());
      if (!pushed.ok()) {
        return ToGrpc(pushed);
      }
    }
    return request->has_pull() ? ToGrpc(Pull(request->pull(), reply)) : grpc::Status::OK;
  }

  grpc::Status Applied(grpc::ServerContext* context, const AppliedRequest* request,
                       AppliedReply* reply) override {
    const grpc::Status allowed = CheckToken(*context, token_);
    if (allowed.ok()) {
      reply->set_batches(shard_.AppliedBatches(request->epoch(), request->shard()));
    }
    return allowed;
  }

  grpc::Status Keep(grpc::ServerContext* context, const KeepRequest*, KeepReply*) override {
    const grpc::Status allowed = CheckMaster(*context);
    if (allowed.ok()) {
      shard_.KeepBest();
    }
    return allowed;
  }

  grpc::Status Export(grpc::ServerContext* context, const ExportRequest*,
                      grpc::ServerWriter<ExportChunk>* writer) override {
    const grpc::Status allowed = CheckMaster(*context);
    if (!allowed.ok()) {
      return allowed;
    }
    const std::string bytes = models::SaveWeights(shard_.Export());
    ExportChunk chunk;
    for (size_t begin = 0; begin < bytes.size(); begin += kExportChunkBytes) {
      chunk.set_weights(bytes.substr(begin, kExportChunkBytes));
      if (!writer->Write(chunk)) {
        return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the reader of an export went away");
      }
    }
    return grpc::Status::OK;
  }

 private:
  // The calls of a master that has been succeeded are refused.
  grpc::Status CheckMaster(const grpc::ServerContext& context) {
    const grpc::Status allowed = CheckToken(context, token_);
    if (allowed.ok() && !fence_.Admit(TermOf(context.client_metadata()))) {
      return grpc::Status(grpc::StatusCode::ABORTED, "this master has been succeeded by another");
    }
    return allowed;
  }

  Status Push(const PushProto& proto) {
    PushRequest push;
    push.batch = FromProto(proto.batch());
    push.version = proto.version();
    push.weight = proto.weight();
    push.end = proto.end();
    if (push.end) {
      return shard_.Push(push);
    }
    std::vector<float> dense;
    RETURN_IF_ERROR(Unpack(proto.dense(), &dense));
    if (dense.size() != dense_size_) {
      return InvalidArgument(fmt::format("a push of {} dense numbers to a server that holds {}",
                                         dense.size(), dense_size_));
    }
    size_t begin = 0;
    for (size_t size : sizes_) {
      push.dense.push_back(std::span(dense).subspan(begin, size));
      begin += size;
    }
    const auto tables = static_cast<size_t>(proto.tables_size());
    std::vector<std::vector<int64_t>> ids(tables);
    std::vector<std::vector<float>> values(tables);
    for (size_t t = 0; t < tables; ++t) {
      RETURN_IF_ERROR(Unpack(proto.tables(static_cast<int>(t)).ids(), &ids[t]));
      RETURN_IF_ERROR(Unpack(proto.tables(static_cast<int>(t)).values(), &values[t]));
      push.tables.push_back({ids[t], values[t]});
    }
    return shard_.Push(push);
  }

  Status Pull(const PullProto& proto, ExchangeReply* reply) {
    if (static_cast<size_t>(proto.tables_size()) != dimensions_.size()) {
      return InvalidArgument(fmt::format("a pull names {} tables; the model has {}",
                                         proto.tables_size(), dimensions_.size()));
    }
    PullRequest pull;
    pull.batch = FromProto(proto.batch());
    pull.evaluation = proto.evaluation();
    PullTarget target;
    std::vector<std::vector<int64_t>> ids(dimensions_.size());
    std::vector<std::vector<float>> values(dimensions_.size());
    for (size_t t = 0; t < dimensions_.size(); ++t) {
      RETURN_IF_ERROR(Unpack(proto.tables(static_cast<int>(t)), &ids[t]));
      values[t].resize(ids[t].size() * dimensions_[t]);
      pull.tables.emplace_back(ids[t]);
      target.tables.push_back(values[t].data());
    }
    std::vector<float> dense(dense_size_);
    size_t begin = 0;
    for (size_t size : sizes_) {
      target.dense.push_back(dense.data() + begin);
      begin += size;
    }
    const Result<int64_t> version = shard_.Pull(pull, target, kStepWaitSeconds);
    if (version.status().code() == Code::kDeadlineExceeded) {
      reply->set_not_open(true);
      return Status();
    }
    RETURN_IF_ERROR(version.status());
    reply->set_version(*version);
    reply->set_dense(Pack<float>(dense));
    for (const std::vector<float>& table : values) {
      reply->add_tables(Pack<float>(table));
    }
    return Status();
  }

  const std::string token_;
  TermFence fence_;
  ParameterShard& shard_;
  std::vector<size_t> sizes_;
  size_t dense_size_ = 0;
  std::vector<uint32_t> dimensions_;
};

class Server final : public ParameterServer {
 public:
  Server(std::string host, const std::string& token, const models::Network& network,
         const Placement& placement, ParameterShard& shard)
      : host_(std::move(host)), shard_(shard), service_(token, network, placement, shard) {
    server_ = StartServer(host_, &service_, &port_);
  }
  ~Server() override {
    shard_.Close();
    if (server_ != nullptr) {
      server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
      server_->Wait();
    }
  }
  bool listening() const { return server_ != nullptr && port_ != 0; }
  std::string address() const override { return fmt::format("{}:{}", host_, port_); }

 private:
  const std::string host_;
  int port_ = 0;
  ParameterShard& shard_;
  Service service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

Result<std::unique_ptr<ParameterServer>> ParameterServer::Start(const std::string& host,
                                                                const std::string& token,
                                                                const models::Network& network,
                                                                const Placement& placement,
                                                                ParameterShard& shard) {
  auto server = std::make_unique<Server>(host, token, network, placement, shard);
  if (!server->listening()) {
    return ResourceExhausted(fmt::format("a parameter server cannot listen on {}", host));
  }
  return std::unique_ptr<ParameterServer>(std::move(server));
}

}  // namespace sluice::elastic
