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

constexpr auto kRetryWait = std::chrono::milliseconds(20);
// While servers are waited for, the master is asked so often whether they are still the right ones.
constexpr auto kMapCheck = std::chrono::milliseconds(500);

// The rows of one table in the order of their partitions: places in the batch's list.
struct RowOrder {
  std::vector<uint32_t> places;
  std::vector<size_t> begin;  // of each partition, and the end
};

class Remote final : public ParameterLink {
 public:
  Remote(const PartitionMap& map, MapSource newer_map, std::string token,
         const models::Network& network, std::stop_token stop)
      : token_(std::move(token)),
        network_(network),
        stop_(std::move(stop)),
        newer_map_(std::move(newer_map)),
        layout_(network, static_cast<uint32_t>(map.primary.size())),
        versions_(map.primary.size(), 0) {
    for (const models::DenseTensor& tensor : network.dense()) {
      dense_.emplace_back(tensor.size());
    }
    Follow(map);
  }

  Status Pull(const BatchIdentity& batch, bool evaluation, models::ParameterView* view) override {
    return Exchange({.pull = &batch, .evaluation = evaluation, .wanted = view});
  }

  Status Push(const BatchIdentity& batch, double weight, const models::ParameterView& view,
              const models::Gradient& gradient) override {
    return Exchange({.push = &batch, .weight = weight, .view = &view, .gradient = &gradient});
  }

  Status PushAndPull(const BatchIdentity& batch, double weight, const models::ParameterView& view,
                     const models::Gradient& gradient, const BatchIdentity& next,
                     models::ParameterView* next_view) override {
    return Exchange({.push = &batch,
                     .weight = weight,
                     .view = &view,
                     .gradient = &gradient,
                     .pull = &next,
                     .wanted = next_view});
  }

  Status PushEnd(const BatchIdentity& batch) override { return Exchange({.push = &batch}); }

  Result<int64_t> AppliedBatches(uint32_t epoch, int64_t shard) override {
    const auto give_up = GiveUp();
    for (;;) {
      int64_t everywhere = Task::kToTheEnd;
      bool again = false;
      for (Server& server : servers_) {
        AppliedRequest request;
        request.set_epoch(epoch);
        request.set_shard(shard);
        request.set_map_version(map_.version);
        AppliedReply reply;
        grpc::ClientContext context;
        Prepare(&context, token_);
        server.status = server.stub->Applied(&context, request, &reply);
        again = again || Unreachable(server) || reply.wrong_owner();
        if (!server.status.ok() && !Unreachable(server)) {
          return FromGrpc(server.status, server.name);
        }
        everywhere = std::min(everywhere, reply.batches());
      }
      if (!again) {
        return everywhere;
      }
      RETURN_IF_ERROR(LookForMap(give_up).status());
    }
  }

 private:
  struct Server {
    std::string name;
    std::vector<uint32_t> partitions;
    std::unique_ptr<ParameterService::Stub> stub;
    ExchangeRequest request;
    ExchangeReply reply;
    bool answered = false;
    grpc::Status status;
  };
  // What is exchanged, whoever has the partitions.
  struct Work {
    const BatchIdentity* push = nullptr;  // without a gradient: the end of a lane
    double weight = 0;
    const models::ParameterView* view = nullptr;
    const models::Gradient* gradient = nullptr;
    const BatchIdentity* pull = nullptr;
    bool evaluation = false;
    models::ParameterView* wanted = nullptr;
  };
  using Clock = std::chrono::steady_clock;

  static Clock::time_point GiveUp() {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                              std::chrono::duration<double>(kRetrySeconds));
  }
  static bool Unreachable(const Server& server) {
    return server.status.error_code() == grpc::StatusCode::UNAVAILABLE ||
           server.status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
           server.status.error_code() == grpc::StatusCode::CANCELLED;
  }

  void Follow(const PartitionMap& map) {
    std::vector<Server> servers;
    for (const auto& [id, address] : map.servers) {
      Server server;
      server.partitions = map.PrimariesOf(id);
      if (server.partitions.empty()) {
        continue;
      }
      server.name = fmt::format("parameter server {} at {}", id, address);
      server.stub = ParameterService::NewStub(OpenChannel(address));
      servers.push_back(std::move(server));
    }
    servers_.swap(servers);
    map_ = map;
  }

  // True: there is a newer map. Waits a little either way.
  Result<bool> LookForMap(Clock::time_point give_up) {
    if (stop_.stop_requested() || Clock::now() > give_up) {
      for (const Server& server : servers_) {
        if (!server.answered) {
          return Unavailable(
              fmt::format("{} cannot be reached: {}", server.name, server.status.error_message()));
        }
      }
      return Unavailable("the parameter servers cannot be reached");
    }
    ASSIGN_OR_RETURN(const PartitionMap map, newer_map_(map_.version));
    if (map.version > map_.version) {
      Follow(map);
      return true;
    }
    std::this_thread::sleep_for(kRetryWait);
    return false;
  }

  RowOrder OrderRows(size_t table, const std::vector<int64_t>& ids) const {
    RowOrder order;
    const uint32_t partitions = layout_.partitions();
    std::vector<uint32_t> partition_of(ids.size());
    order.begin.assign(partitions + 1, 0);
    for (size_t i = 0; i < ids.size(); ++i) {
      partition_of[i] = layout_.PartitionOf(table, ids[i]);
      ++order.begin[partition_of[i] + 1];
    }
    std::partial_sum(order.begin.begin(), order.begin.end(), order.begin.begin());
    std::vector<size_t> next(order.begin.begin(), order.begin.end() - 1);
    order.places.resize(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      order.places[next[partition_of[i]]++] = static_cast<uint32_t>(i);
    }
    return order;
  }

  template <typename Function>
  static void EachPlace(const Server& server, const RowOrder& order, const Function& function) {
    for (uint32_t partition : server.partitions) {
      for (size_t i = order.begin[partition]; i < order.begin[partition + 1]; ++i) {
        function(order.places[i]);
      }
    }
  }

  void Build(const Work& work) {
    for (Server& server : servers_) {
      server.request.Clear();
      server.request.set_map_version(map_.version);
      server.answered = false;
      if (work.push != nullptr) {
        AddPush(work, &server);
      }
      if (work.pull != nullptr) {
        PullProto* pull = server.request.mutable_pull();
        ToProto(*work.pull, pull->mutable_batch());
        pull->set_evaluation(work.evaluation);
      }
    }
    for (size_t t = 0; t < network_.tables().size(); ++t) {
      if (work.gradient != nullptr) {
        AddPushRows(work, t);
      }
      if (work.pull != nullptr) {
        AddPullRows(*work.wanted, t);
      }
    }
  }

  void AddPush(const Work& work, Server* server) const {
    PushProto* push = server->request.mutable_push();
    ToProto(*work.push, push->mutable_batch());
    push->set_weight(work.weight);
    push->set_end(work.gradient == nullptr);
    if (work.gradient == nullptr) {
      return;
    }
    std::string* versions = push->mutable_versions();
    std::string* dense = push->mutable_dense();
    for (uint32_t partition : server->partitions) {
      versions->append(reinterpret_cast<const char*>(&versions_[partition]), sizeof(int64_t));
      for (const PartitionLayout::Chunk& chunk : layout_.chunks(partition)) {
        dense->append(
            reinterpret_cast<const char*>(work.gradient->dense[chunk.tensor].data() + chunk.begin),
            chunk.size() * sizeof(float));
      }
    }
  }

  void AddPushRows(const Work& work, size_t table) {
    const std::vector<int64_t>& ids = work.view->tables[table].ids;
    const float* gradients = work.gradient->tables[table].data();
    const size_t dimension = network_.tables()[table].dimension;
    const RowOrder order = OrderRows(table, ids);
    for (Server& server : servers_) {
      RowsProto* rows = server.request.mutable_push()->add_tables();
      std::string* to_ids = rows->mutable_ids();
      std::string* to_values = rows->mutable_values();
      EachPlace(server, order, [&](uint32_t place) {
        to_ids->append(reinterpret_cast<const char*>(&ids[place]), sizeof(int64_t));
        to_values->append(reinterpret_cast<const char*>(gradients + place * dimension),
                          dimension * sizeof(float));
      });
    }
  }

  void AddPullRows(const models::ParameterView& view, size_t table) {
    const std::vector<int64_t>& ids = view.tables[table].ids;
    pulled_.resize(network_.tables().size());
    pulled_[table] = OrderRows(table, ids);
    for (Server& server : servers_) {
      std::string* to = server.request.mutable_pull()->add_tables();
      EachPlace(server, pulled_[table], [&](uint32_t place) {
        to->append(reinterpret_cast<const char*>(&ids[place]), sizeof(int64_t));
      });
    }
  }

  // All servers at the same time; those that did not answer again and again, with the same batch: a
  // server that has applied it already says so.
  Status Exchange(const Work& work) {
    const auto give_up = GiveUp();
    Build(work);
    for (;;) {
      ExchangeOnce();
      bool again = false;
      for (Server& server : servers_) {
        if (!server.status.ok() && !Unreachable(server)) {
          return FromGrpc(server.status, server.name);
        }
        server.answered = server.status.ok() && !server.reply.wrong_owner();
        again = again || !server.answered;
      }
      if (!again) {
        return work.pull == nullptr ? Status() : TakeReplies(work.wanted);
      }
      ASSIGN_OR_RETURN(const bool moved, LookForMap(give_up));
      if (moved) {
        Build(work);
      }
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
    for (size_t left = calls.size(); left > 0;) {
      const auto until = std::chrono::system_clock::now() + kMapCheck;
      if (queue.AsyncNext(&tag, &ok, until) == grpc::CompletionQueue::GOT_EVENT) {
        --left;
        continue;
      }
      // A server that hangs is given up by the master long before the call's deadline.
      const Result<PartitionMap> map = newer_map_(0);
      if (stop_.stop_requested() || (map.ok() && map->version > map_.version)) {
        for (const auto& context : contexts) {
          context->TryCancel();
        }
      }
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
    for (const Server& server : servers_) {
      RETURN_IF_ERROR(TakeDense(server));
      for (size_t t = 0; t < view->tables.size(); ++t) {
        RETURN_IF_ERROR(TakeRows(server, t, &view->tables[t].values));
      }
    }
    return Status();
  }

  Status TakeDense(const Server& server) {
    std::vector<int64_t> versions;
    RETURN_IF_ERROR(Unpack(server.reply.versions(), &versions));
    size_t dense_size = 0;
    for (uint32_t partition : server.partitions) {
      dense_size += layout_.dense_size(partition);
    }
    if (versions.size() != server.partitions.size() ||
        server.reply.dense().size() != dense_size * sizeof(float)) {
      return Internal(fmt::format("{} answers for other partitions than were asked", server.name));
    }
    const char* from = server.reply.dense().data();
    for (size_t i = 0; i < versions.size(); ++i) {
      const uint32_t partition = server.partitions[i];
      versions_[partition] = versions[i];
      for (const PartitionLayout::Chunk& chunk : layout_.chunks(partition)) {
        if (chunk.size() > 0) {
          std::memcpy(dense_[chunk.tensor].data() + chunk.begin, from,
                      chunk.size() * sizeof(float));
        }
        from += chunk.size() * sizeof(float);
      }
    }
    return Status();
  }

  Status TakeRows(const Server& server, size_t table, std::vector<float>* values) const {
    const size_t bytes = network_.tables()[table].dimension * sizeof(float);
    size_t count = 0;
    EachPlace(server, pulled_[table], [&](uint32_t) { ++count; });
    if (static_cast<size_t>(server.reply.tables_size()) <= table ||
        server.reply.tables(static_cast<int>(table)).size() != count * bytes) {
      return Internal(fmt::format("{} answers with other rows than were asked for", server.name));
    }
    const char* from = server.reply.tables(static_cast<int>(table)).data();
    EachPlace(server, pulled_[table], [&](uint32_t place) {
      std::memcpy(reinterpret_cast<char*>(values->data()) + place * bytes, from, bytes);
      from += bytes;
    });
    return Status();
  }

  const std::string token_;
  const models::Network& network_;
  const std::stop_token stop_;
  const MapSource newer_map_;
  const PartitionLayout layout_;
  PartitionMap map_;
  std::vector<Server> servers_;
  std::vector<int64_t> versions_;  // by partition: of the values that were pulled last
  std::vector<RowOrder> pulled_;   // by table
  std::vector<std::vector<float>> dense_;
};

}  // namespace

std::unique_ptr<ParameterLink> ConnectParameters(const PartitionMap& map, MapSource newer_map,
                                                 const std::string& token,
                                                 const models::Network& network,
                                                 std::stop_token stop) {
  return std::make_unique<Remote>(map, std::move(newer_map), token, network, std::move(stop));
}

}  // namespace sluice::elastic
