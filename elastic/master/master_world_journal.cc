#include <algorithm>

#include "elastic/master/journal.pb.h"
#include "elastic/master/master.h"

// The state of an all-reduce job's regroups that outlives its master.
namespace sluice::elastic {
namespace {

void Put(const Rendezvous::Member& member, WorldMemberState* state) {
  state->set_incarnation(member.incarnation.value());
  state->set_address(member.address);
  state->set_closed(member.closed);
}

Rendezvous::Member Get(const WorldMemberState& state) {
  return {Incarnation(state.incarnation()), state.address(), state.closed()};
}

void Put(const Task& task, LaneState* state) {
  state->set_task(task.id.value());
  state->set_epoch(task.epoch.value());
  state->set_shard(task.shard.value());
  state->set_first_batch(task.first_batch.value());
  state->set_last_batch(task.last_batch.value());
  state->set_attempt(task.attempt.value());
  state->set_round(task.round.value());
  state->set_lane(task.lane);
  state->set_lanes(task.lanes);
  state->set_range(task.range.value());
}

Task Get(const LaneState& state) {
  Task task;
  task.id = TaskId(state.task());
  task.epoch = Epoch(state.epoch());
  task.shard = ShardId(state.shard());
  task.first_batch = BatchIndex(state.first_batch());
  task.last_batch = BatchIndex(state.last_batch());
  task.attempt = Attempt(state.attempt());
  task.round = RoundIndex(state.round());
  task.lane = state.lane();
  task.lanes = state.lanes();
  task.range = RangeId(state.range());
  return task;
}

}  // namespace

void Master::SaveWorld(MasterSave* save) const {
  const Rendezvous::Memory memory = rounds_->rendezvous().Remember();
  WorldState* state = save->mutable_world();
  state->set_id(memory.world.id.value());
  state->set_generation(memory.world.generation.value());
  for (const Rendezvous::Member& member : memory.world.members) {
    Put(member, state->add_members());
  }
  state->set_source(memory.world.source.value());
  state->set_closed(memory.world.closed);
  state->set_beginning(memory.world.beginning);
  state->set_committed(memory.committed);
  for (const Rendezvous::Known& known : memory.workers) {
    WorldMemberState* one = state->add_workers();
    Put(known.member, one);
    one->set_tried(known.tried.value());
    one->set_may_have(known.may_have);
  }
  for (const Task& task : rounds_->lanes()) {
    Put(task, state->add_round());
  }
  state->set_best_closed(early_stopping_.best().step);
}

Status Master::RestoreWorld(const MasterSave& save) {
  if (!rounds_.has_value() || !save.has_world()) {
    return Status();
  }
  const WorldState& state = save.world();
  const auto is_shard = [this](const LaneState& lane) {
    return lane.shard() >= 0 && lane.shard() < options_.queue.shards;
  };
  if ((state.members_size() > 0 && state.source() >= static_cast<uint32_t>(state.members_size())) ||
      static_cast<uint32_t>(state.round_size()) > options_.queue.lanes ||
      !std::all_of(state.round().begin(), state.round().end(), is_shard)) {
    return Internal("a world that was saved with other members or lanes");
  }
  Rendezvous::Memory memory;
  memory.world.id = WorldId(state.id());
  memory.world.generation = Generation(state.generation());
  for (const WorldMemberState& member : state.members()) {
    memory.world.members.push_back(Get(member));
  }
  memory.world.source = Rank(state.source());
  memory.world.closed = state.closed();
  memory.world.beginning = state.beginning();
  memory.committed = state.committed();
  for (const WorldMemberState& one : state.workers()) {
    memory.workers.push_back({Get(one), WorldId(one.tried()), one.may_have()});
  }
  std::vector<Task> lanes;
  for (const LaneState& lane : state.round()) {
    lanes.push_back(Get(lane));
  }
  rounds_->Restore(memory, std::move(lanes));
  early_stopping_.SetStep(state.best_closed());
  return Status();
}

}  // namespace sluice::elastic
