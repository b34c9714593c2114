// First: gRPC brings macros that have the names of ours.
#include "elastic/grpc_links.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "elastic/elastic.grpc.pb.h"
#include "elastic/wire_internal.h"

namespace sluice::elastic {
namespace {

constexpr auto kRetryWait = std::chrono::milliseconds(50);
// A model is exported once; it may be large.
constexpr auto kExportDeadline = std::chrono::minutes(10);

// The ids of one table that belong to one server, and where they stand in the batch's list.
struct Part {
  std::vector<int64_t> ids;
  std::vector<uint32_t> places;
};

class Remote final : public ParameterLink {
 public:
  Remote(const std::vector<std::string>& addresses, std::string token,
         const models::Network& network, std::stop_token stop)
      : token_(std::move(token)), network_(network), stop_(std::move(stop)) {
    for (uint32_t i = 0; i < addresses.size(); ++i) {
      Server server;
      server.name = fmt::format("parameter server {} at {}", i, addresses[i]);
      server.placement = {i, static_cast<uint32_t>(addresses.size())};
      server.stub = ParameterService::NewStub(OpenChannel(addresses[i]));
      servers_.push_back(std::move(server));
    }
    for (const models::DenseTensor& tensor : network.dense()) {
      dense_.emplace_back(tensor.size());
    }
  }

  Status Pull(const BatchIdentity& batch, bool evaluation, models::ParameterView* view) override {
    Clear();
    AddPull(batch, evaluation, *view);
    RETURN_IF_ERROR(ExchangeAll());
    return TakeReplies(view);
  }

  Status Push(const BatchIdentity& batch, double weight, const models::ParameterView& view,
              const models::Gradient& gradient) override {
    Clear();
    AddPush(batch, weight, view, gradient);
    return ExchangeAll();
  }

  Status PushAndPull(const BatchIdentity& batch, double weight, const models::ParameterView& view,
                     const models::Gradient& gradient, const BatchIdentity& next,
                     models::ParameterView* next_view) override {
    Clear();
    AddPush(batch, weight, view, gradient);
    AddPull(next, false, *next_view);
    RETURN_IF_ERROR(ExchangeAll());
    return TakeReplies(next_view);
  }

  Status PushEnd(const BatchIdentity& batch) override {
    Clear();
    for (Server& server : servers_) {
      ToProto(batch, server.request.mutable_push()->mutable_batch());
      server.request.mutable_push()->set_end(true);
    }
    return ExchangeAll();
  }

  Result<int64_t> AppliedBatches(uint32_t epoch, int64_t shard) override {
    int64_t everywhere = Task::kToTheEnd;
    for (Server& server : servers_) {
      AppliedRequest request;
      request.set_epoch(epoch);
      request.set_shard(shard);
      AppliedReply reply;
      RETURN_IF_ERROR(CallWithRetry(token_, server.name, stop_, [&](grpc::ClientContext* context) {
        return server.stub->Applied(context, request, &reply);
      }));
      everywhere = std::min(everywhere, reply.batches());
    }
    return everywhere;
  }

 private:
  struct Server {
    std::string name;
    Placement placement;
    std::unique_ptr<ParameterService::Stub> stub;
    int64_t version = 0;
    std::vector<Part> pulled;  // by table
    ExchangeRequest request;
    ExchangeReply reply;
    bool answered = false;
    grpc::Status status;
  };

  void Clear() {
    for (Server& server : servers_) {
      server.request.Clear();
    }
  }

  std::vector<Part> Partition(const Server& server, const models::ParameterView& view) const {
    std::vector<Part> parts(view.tables.size());
    for (size_t t = 0; t < view.tables.size(); ++t) {
      const std::vector<int64_t>& ids = view.tables[t].ids;
      for (uint32_t place = 0; place < ids.size(); ++place) {
        if (Placement::ServerOf(t, ids[place], server.placement.count) == server.placement.index) {
          parts[t].ids.push_back(ids[place]);
          parts[t].places.push_back(place);
        }
      }
    }
    return parts;
  }

  void AddPush(const BatchIdentity& batch, double weight, const models::ParameterView& view,
               const models::Gradient& gradient) {
    for (Server& server : servers_) {
      PushProto* push = server.request.mutable_push();
      ToProto(batch, push->mutable_batch());
      push->set_version(server.version);
      push->set_weight(weight);
      std::string* dense = push->mutable_dense();
      for (const std::vector<float>& tensor : gradient.dense) {
        const auto [begin, end] = server.placement.Slice(tensor.size());
        dense->append(reinterpret_cast<const char*>(tensor.data() + begin),
                      (end - begin) * sizeof(float));
      }
      const std::vector<Part> parts = Partition(server, view);
      for (size_t t = 0; t < parts.size(); ++t) {
        const size_t dimension = network_.tables()[t].dimension;
        RowsProto* rows = push->add_tables();
        rows->set_ids(Pack<int64_t>(parts[t].ids));
        std::string* values = rows->mutable_values();
        for (uint32_t place : parts[t].places) {
          values->append(
              reinterpret_cast<const char*>(gradient.tables[t].data() + place * dimension),
              dimension * sizeof(float));
        }
      }
    }
  }

  void AddPull(const BatchIdentity& batch, bool evaluation, const models::ParameterView& view) {
    for (Server& server : servers_) {
      PullProto* pull = server.request.mutable_pull();
      ToProto(batch, pull->mutable_batch());
      pull->set_evaluation(evaluation);
      server.pulled = Partition(server, view);
      for (const Part& part : server.pulled) {
        pull->add_tables(Pack<int64_t>(part.ids));
      }
    }
  }

  // All servers at the same time; those that cannot be reached again and again, with the same
  // request: a server that has applied it already says so.
  Status ExchangeAll() {
    for (Server& server : servers_) {
      server.answered = false;
    }
    const auto give_up =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(kRetrySeconds);
    for (;;) {
      ExchangeOnce();
      bool again = false;
      for (Server& server : servers_) {
        const bool unreachable = server.status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                                 server.status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
        server.answered = server.status.ok();
        if (!server.status.ok() && !unreachable) {
          return FromGrpc(server.status, server.name);
        }
        if (unreachable && (stop_.stop_requested() || std::chrono::steady_clock::now() > give_up)) {
          return Unavailable(
              fmt::format("{} cannot be reached: {}", server.name, server.status.error_message()));
        }
        again = again || unreachable;
      }
      if (!again) {
        return Status();
      }
      std::this_thread::sleep_for(kRetryWait);
    }
  }

  void ExchangeOnce() {
    if (servers_.size() == 1) {
      // One server needs no queue: the plain call is the cheapest.
      Server& server = servers_.front();
      grpc::ClientContext context;
      Prepare(&context, token_);
      server.status = server.stub->Exchange(&context, server.request, &server.reply);
      return;
    }
    grpc::CompletionQueue queue;
    std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
    std::vector<std::unique_ptr<grpc::ClientAsyncResponseReader<ExchangeReply>>> calls;
    for (Server& server : servers_) {
      if (server.answered) {
        continue;
      }
      contexts.push_back(std::make_unique<grpc::ClientContext>());
      Prepare(contexts.back().get(), token_);
      calls.push_back(server.stub->AsyncExchange(contexts.back().get(), server.request, &queue));
      calls.back()->Finish(&server.reply, &server.status, &server);
    }
    void* tag = nullptr;
    bool ok = false;
    for (size_t i = 0; i < calls.size(); ++i) {
      queue.Next(&tag, &ok);
    }
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
  }

  Status TakeReplies(models::ParameterView* view) {
    for (const Server& server : servers_) {
      if (server.reply.not_open()) {
        return Status(Code::kDeadlineExceeded, "the step is not open yet");
      }
    }
    view->dense.clear();
    for (const std::vector<float>& tensor : dense_) {
      view->dense.push_back(tensor.data());
    }
    for (size_t t = 0; t < view->tables.size(); ++t) {
      view->tables[t].values.resize(view->tables[t].ids.size() * network_.tables()[t].dimension);
    }
    for (Server& server : servers_) {
      server.version = server.reply.version();
      RETURN_IF_ERROR(TakeDense(server));
      for (size_t t = 0; t < view->tables.size(); ++t) {
        RETURN_IF_ERROR(TakeRows(server, t, &view->tables[t].values));
      }
    }
    return Status();
  }

  Status TakeDense(const Server& server) {
    const char* from = server.reply.dense().data();
    size_t left = server.reply.dense().size();
    for (std::vector<float>& tensor : dense_) {
      const auto [begin, end] = server.placement.Slice(tensor.size());
      const size_t bytes = (end - begin) * sizeof(float);
      if (bytes > left) {
        return Internal(fmt::format("{} answers with too few dense numbers", server.name));
      }
      if (bytes > 0) {
        std::memcpy(tensor.data() + begin, from, bytes);
      }
      from += bytes;
      left -= bytes;
    }
    return Status();
  }

  Status TakeRows(const Server& server, size_t table, std::vector<float>* values) const {
    const Part& part = server.pulled[table];
    const size_t bytes = network_.tables()[table].dimension * sizeof(float);
    if (static_cast<size_t>(server.reply.tables_size()) <= table ||
        server.reply.tables(static_cast<int>(table)).size() != part.ids.size() * bytes) {
      return Internal(fmt::format("{} answers with other rows than were asked for", server.name));
    }
    const char* from = server.reply.tables(static_cast<int>(table)).data();
    for (uint32_t place : part.places) {
      std::memcpy(reinterpret_cast<char*>(values->data()) + place * bytes, from, bytes);
      from += bytes;
    }
    return Status();
  }

  const std::string token_;
  const models::Network& network_;
  const std::stop_token stop_;
  std::vector<Server> servers_;
  std::vector<std::vector<float>> dense_;
};

}  // namespace

std::unique_ptr<ParameterLink> ConnectParameters(const std::vector<std::string>& addresses,
                                                 const std::string& token,
                                                 const models::Network& network,
                                                 std::stop_token stop) {
  return std::make_unique<Remote>(addresses, token, network, std::move(stop));
}

Status KeepWeights(const std::vector<std::string>& addresses, const MasterSeat& seat) {
  for (const std::string& address : addresses) {
    const auto stub = ParameterService::NewStub(OpenChannel(address));
    KeepReply reply;
    RETURN_IF_ERROR(CallWithRetry(seat.token, fmt::format("parameter server at {}", address), {},
                                  [&](grpc::ClientContext* context) {
                                    context->AddMetadata(kTermKey, fmt::format("{}", seat.term));
                                    return stub->Keep(context, KeepRequest(), &reply);
                                  }));
  }
  return Status();
}

Result<models::NetworkWeights> CollectWeights(const std::vector<std::string>& addresses,
                                              const MasterSeat& seat,
                                              const models::Network& network) {
  std::vector<models::NetworkWeights> parts;
  for (const std::string& address : addresses) {
    const auto stub = ParameterService::NewStub(OpenChannel(address));
    std::string bytes;
    RETURN_IF_ERROR(CallWithRetry(seat.token, fmt::format("parameter server at {}", address), {},
                                  [&](grpc::ClientContext* context) {
                                    context->AddMetadata(kTermKey, fmt::format("{}", seat.term));
                                    context->set_deadline(std::chrono::system_clock::now() +
                                                          kExportDeadline);
                                    bytes.clear();
                                    const auto reader = stub->Export(context, ExportRequest());
                                    ExportChunk chunk;
                                    while (reader->Read(&chunk)) {
                                      bytes += chunk.weights();
                                    }
                                    return reader->Finish();
                                  }));
    ASSIGN_OR_RETURN(models::NetworkWeights part, models::LoadWeights(bytes));
    parts.push_back(std::move(part));
  }
  return MergeParts(parts, network);
}

Result<models::NetworkWeights> MergeParts(const std::vector<models::NetworkWeights>& parts,
                                          const models::Network& network) {
  models::NetworkWeights whole;
  for (size_t i = 0; i < network.dense().size(); ++i) {
    std::vector<float> tensor;
    for (const models::NetworkWeights& part : parts) {
      if (part.dense.size() != network.dense().size()) {
        return Internal("a parameter server holds another model");
      }
      tensor.insert(tensor.end(), part.dense[i].begin(), part.dense[i].end());
    }
    whole.dense.push_back(std::move(tensor));
  }
  for (size_t t = 0; t < network.tables().size(); ++t) {
    const size_t dimension = network.tables()[t].dimension;
    std::vector<std::pair<int64_t, const float*>> rows;
    for (const models::NetworkWeights& part : parts) {
      if (part.tables.size() != network.tables().size()) {
        return Internal("a parameter server holds another model");
      }
      for (size_t i = 0; i < part.tables[t].ids.size(); ++i) {
        rows.emplace_back(part.tables[t].ids[i], part.tables[t].values.data() + i * dimension);
      }
    }
    std::sort(rows.begin(), rows.end());
    models::NetworkWeights::Table table;
    for (const auto& [id, values] : rows) {
      table.ids.push_back(id);
      table.values.insert(table.values.end(), values, values + dimension);
    }
    whole.tables.push_back(std::move(table));
  }
  RETURN_IF_ERROR(models::CheckShape(whole, network));
  return whole;
}

}  // namespace sluice::elastic
