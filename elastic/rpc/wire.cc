#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <thread>

#include "elastic/parameters/partition.h"
#include "elastic/rpc/wire_internal.h"

namespace sluice::elastic {
namespace {

constexpr auto kFirstCallWait = std::chrono::milliseconds(20);
// Short: a job makes no progress until every process has found its next master.
constexpr auto kLongestWait = std::chrono::milliseconds(200);

}  // namespace

void ToProto(const Task& task, TaskProto* proto) {
  proto->set_id(task.id.value());
  proto->set_evaluate(task.kind == Task::Kind::kEvaluate);
  proto->set_compare(task.kind == Task::Kind::kCompare);
  proto->set_epoch(task.epoch.value());
  proto->set_shard(task.shard.value());
  proto->set_first_batch(task.first_batch.value());
  proto->set_last_batch(task.last_batch.value());
  proto->set_attempt(task.attempt.value());
  proto->set_round(task.round.value());
  proto->set_lane(task.lane);
  proto->set_lanes(task.lanes);
  proto->set_range(task.range.value());
  proto->set_rate_cuts(task.rate_cuts);
  for (const ShardId shard : task.shards) {
    proto->add_shards(shard.value());
  }
}

Task FromProto(const TaskProto& proto) {
  Task task;
  task.id = TaskId(proto.id());
  task.kind = proto.compare()    ? Task::Kind::kCompare
              : proto.evaluate() ? Task::Kind::kEvaluate
                                 : Task::Kind::kTrain;
  task.epoch = Epoch(proto.epoch());
  task.shard = ShardId(proto.shard());
  task.first_batch = BatchIndex(proto.first_batch());
  task.last_batch = BatchIndex(proto.last_batch());
  task.attempt = Attempt(proto.attempt());
  task.round = RoundIndex(proto.round());
  task.lane = proto.lane();
  task.lanes = proto.lanes();
  task.range = RangeId(proto.range());
  task.rate_cuts = proto.rate_cuts();
  for (const int64_t shard : proto.shards()) {
    task.shards.emplace_back(shard);
  }
  return task;
}

void ToProto(const RoundPosition& position, RoundPositionProto* proto) {
  proto->set_epoch(position.epoch.value());
  proto->set_round(position.round.value());
  proto->set_step(position.step.value());
  for (const TaskReport& lane : position.lanes) {
    ToProto(lane, proto->add_lanes());
  }
}

RoundPosition FromProto(const RoundPositionProto& proto) {
  RoundPosition position;
  position.epoch = Epoch(proto.epoch());
  position.round = RoundIndex(proto.round());
  position.step = BatchIndex(proto.step());
  for (const ReportState& lane : proto.lanes()) {
    position.lanes.push_back(FromProto(lane));
  }
  return position;
}

void ToProto(const WorldArrival& arrival, RegroupRequest* proto) {
  proto->set_address(arrival.at.address);
  proto->set_closed(arrival.at.closed);
  proto->set_beginning(arrival.at.beginning);
  proto->set_generation(arrival.at.generation.value());
  proto->set_world(arrival.at.world.value());
  proto->set_failed(arrival.at.failed);
  proto->set_silent(arrival.at.silent.value());
  ToProto(arrival.position, proto->mutable_position());
  proto->set_kept(arrival.kept);
  proto->set_kept_digest(arrival.kept_digest);
}

WorldArrival FromProto(const RegroupRequest& proto) {
  WorldArrival arrival;
  arrival.at.address = proto.address();
  arrival.at.closed = proto.closed();
  arrival.at.beginning = proto.beginning();
  arrival.at.generation = Generation(proto.generation());
  arrival.at.world = WorldId(proto.world());
  arrival.at.failed = proto.failed();
  arrival.at.silent = Incarnation(proto.silent());
  arrival.position = FromProto(proto.position());
  arrival.kept = proto.kept();
  arrival.kept_digest = proto.kept_digest();
  return arrival;
}

void ToProto(const WorldAnswer& answer, RegroupReply* proto) {
  proto->set_work(static_cast<int>(answer.work));
  proto->set_world(answer.world.id.value());
  proto->set_generation(answer.world.generation.value());
  proto->set_closed(answer.world.closed);
  proto->set_beginning(answer.world.beginning);
  proto->set_source(answer.world.source.value());
  proto->set_rank(answer.rank.value());
  proto->set_best(answer.best);
  for (const Rendezvous::Member& member : answer.world.members) {
    RegroupReply::Member* to = proto->add_members();
    to->set_incarnation(member.incarnation.value());
    to->set_address(member.address);
    to->set_closed(member.closed);
  }
  for (const Task& lane : answer.lanes) {
    ToProto(lane, proto->add_lanes());
  }
}

WorldAnswer FromProto(const RegroupReply& proto) {
  WorldAnswer answer;
  answer.work = static_cast<WorldAnswer::Work>(proto.work());
  answer.world.id = WorldId(proto.world());
  answer.world.generation = Generation(proto.generation());
  answer.world.closed = proto.closed();
  answer.world.beginning = proto.beginning();
  answer.world.source = Rank(proto.source());
  answer.rank = Rank(proto.rank());
  answer.best = proto.best();
  for (const RegroupReply::Member& member : proto.members()) {
    answer.world.members.push_back(
        {Incarnation(member.incarnation()), member.address(), member.closed()});
  }
  for (const TaskProto& lane : proto.lanes()) {
    answer.lanes.push_back(FromProto(lane));
  }
  return answer;
}

void ToProto(const MasterLink::Answer& answer, TakeReply* proto) {
  switch (answer.kind) {
    case MasterLink::Answer::Kind::kNothing:
      proto->set_kind(TakeReply::NOTHING);
      break;
    case MasterLink::Answer::Kind::kFinished:
      proto->set_kind(TakeReply::FINISHED);
      break;
    case MasterLink::Answer::Kind::kTask:
      proto->set_kind(TakeReply::TASK);
      ToProto(answer.task, proto->mutable_task());
      for (const Task& task : answer.further) {
        ToProto(task, proto->add_further());
      }
      break;
  }
}

MasterLink::Answer FromProto(const TakeReply& proto) {
  MasterLink::Answer answer;
  if (proto.kind() == TakeReply::FINISHED) {
    answer.kind = MasterLink::Answer::Kind::kFinished;
  } else if (proto.kind() == TakeReply::TASK) {
    answer.kind = MasterLink::Answer::Kind::kTask;
    answer.task = FromProto(proto.task());
    for (const TaskProto& task : proto.further()) {
      answer.further.push_back(FromProto(task));
    }
  }
  return answer;
}

std::vector<TaskId> HeldTasksOf(const TakeRequest& proto) {
  std::vector<TaskId> held;
  for (const int64_t task : proto.held()) {
    held.emplace_back(task);
  }
  return held;
}

void ToProto(const LeaseStatus& lease_status, ReportReply* proto) {
  proto->set_mine(lease_status.mine);
  proto->set_last_batch(lease_status.last_batch.value());
}

LeaseStatus FromProto(const ReportReply& proto) {
  return {proto.mine(), BatchIndex(proto.last_batch())};
}

void ToProto(const BatchIdentity& batch, BatchProto* proto) {
  proto->set_epoch(batch.epoch.value());
  proto->set_shard(batch.shard.value());
  proto->set_batch(batch.batch.value());
  proto->set_attempt(batch.attempt.value());
  proto->set_round(batch.round.value());
  proto->set_lane(batch.lane);
  proto->set_lanes(batch.lanes);
  proto->set_range(batch.range.value());
  proto->set_last(batch.last);
  proto->set_rate_cuts(batch.rate_cuts);
}

BatchIdentity FromProto(const BatchProto& proto) {
  return {Epoch(proto.epoch()),
          ShardId(proto.shard()),
          BatchIndex(proto.batch()),
          Attempt(proto.attempt()),
          RoundIndex(proto.round()),
          proto.lane(),
          proto.lanes(),
          RangeId(proto.range()),
          proto.last(),
          proto.rate_cuts()};
}

void ToProto(const PartitionMap& map, PartitionMapProto* proto) {
  proto->set_version(map.version.value());
  for (const auto& [server, address] : map.servers) {
    proto->add_servers(server.value());
    proto->add_addresses(address);
  }
  for (ServerId server : map.primary) {
    proto->add_primary(server.value());
  }
  for (ServerId server : map.backup) {
    proto->add_backup(server.value());
  }
}

Result<PartitionMap> FromProto(const PartitionMapProto& proto) {
  PartitionMap map;
  map.version = MapVersion(proto.version());
  if (proto.servers_size() != proto.addresses_size()) {
    return InvalidArgument(fmt::format("a map with {} servers and {} addresses",
                                       proto.servers_size(), proto.addresses_size()));
  }
  for (int i = 0; i < proto.servers_size(); ++i) {
    if (!map.servers.emplace(ServerId(proto.servers(i)), proto.addresses(i)).second) {
      return InvalidArgument(fmt::format("a map that has server {} twice", proto.servers(i)));
    }
  }
  map.primary = std::vector<ServerId>(proto.primary().begin(), proto.primary().end());
  map.backup = std::vector<ServerId>(proto.backup().begin(), proto.backup().end());
  RETURN_IF_ERROR(map.Check());
  return map;
}

Result<models::NetworkWeights> ReadDelivery(const std::function<bool(DeliverChunk* chunk)>& next,
                                            Incarnation* worker) {
  std::string bytes, digest;
  for (DeliverChunk chunk; next(&chunk);) {
    *worker = Incarnation(chunk.incarnation());
    bytes += chunk.weights();
    digest = chunk.digest();
  }
  // A truncated stream fails to load.
  ASSIGN_OR_RETURN(models::NetworkWeights weights, models::LoadWeights(bytes));
  RETURN_IF_ERROR(CheckDigest(DigestOf(weights), digest));
  return weights;
}

Status CallWithRetry(const std::string& token, const std::string& context_name,
                     const std::stop_token& stop,
                     const std::function<grpc::Status(grpc::ClientContext*)>& call,
                     TermFence* fence) {
  const auto give_up =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(kRetrySeconds);
  auto wait = kFirstCallWait;
  for (;;) {
    grpc::ClientContext context;
    Prepare(&context, token);
    std::optional<std::stop_callback<std::function<void()>>> cancel;
    if (fence != nullptr) {
      context.AddMetadata(kTermKey, fmt::format("{}", fence->latest()));
    }
    if (fence != nullptr && !stop.stop_requested()) {
      // The next master will listen in a moment. If the call failed at once, the connection would
      // not be attended to while this thread sleeps.
      context.set_wait_for_ready(true);
      cancel.emplace(stop, [&context] { context.TryCancel(); });
    }
    grpc::Status status = call(&context);
    cancel.reset();
    if (status.ok() && fence != nullptr &&
        !fence->Admit(TermOf(context.GetServerInitialMetadata()))) {
      status = grpc::Status(grpc::StatusCode::UNAVAILABLE, "it has been succeeded by another");
    }
    const bool unreachable = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                             status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    if (!unreachable || stop.stop_requested() ||
        std::chrono::steady_clock::now() + wait > give_up) {
      if (unreachable) {
        return Unavailable(
            fmt::format("{} cannot be reached: {}", context_name, status.error_message()));
      }
      return FromGrpc(status, context_name);
    }
    std::this_thread::sleep_for(wait);
    wait = std::min<std::chrono::milliseconds>(wait * 2, kLongestWait);
  }
}

}  // namespace sluice::elastic
