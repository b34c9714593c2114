#pragma once

#include <cstdint>
#include <limits>

#include "base/id.h"

// The ids of a training job, each a type of its own. Counts (of epochs, of shards) are plain
// numbers. Protos and files have plain numbers, too: codecs convert.
namespace sluice::elastic {

// A started process of a job, from 1; a restarted worker gets a new one.
struct IncarnationKind {
  using Number = uint64_t;
  static constexpr Number kFirst = 1;
  static constexpr IdUse kUse = IdUse::kSequence;
};
using Incarnation = Id<IncarnationKind>;
inline constexpr Incarnation kNoIncarnation{0};

// A master of a job, from 1: higher than those of all masters before it.
struct TermKind {
  using Number = int64_t;
  static constexpr Number kFirst = 1;
  static constexpr IdUse kUse = IdUse::kOrdinal;
};
using Term = Id<TermKind>;
inline constexpr Term kNoTerm{0};

// One pass over all training rows, from 1.
struct EpochKind {
  using Number = uint32_t;
  static constexpr Number kFirst = 1;
  static constexpr IdUse kUse = IdUse::kOrdinal;
};
using Epoch = Id<EpochKind>;
inline constexpr Epoch kNoEpoch{0};

// A piece of work that a worker holds a lease on. Training tasks are numbered upwards from 1,
// evaluations and comparisons downwards from -1.
struct TaskKind {
  using Number = int64_t;
  static constexpr Number kFirst = 1;
  static constexpr IdUse kUse = IdUse::kSequence;
};
using TaskId = Id<TaskKind>;
inline constexpr TaskId kNoTask{0};
constexpr bool IsEvaluation(TaskId task) {  // or a comparison
  return task < kNoTask;
}

// A shard of the dataset, from 0.
struct ShardKind {
  using Number = int64_t;
  static constexpr Number kFirst = 0;
  static constexpr IdUse kUse = IdUse::kOrdinal;
};
using ShardId = Id<ShardKind>;

// A shard's place in the order of an epoch, from 0: different in each epoch.
struct ShardPositionKind {
  using Number = int64_t;
  static constexpr Number kFirst = 0;
  static constexpr IdUse kUse = IdUse::kOrdinal;
};
using ShardPosition = Id<ShardPositionKind>;

// A batch of a shard, from 0; in synchronous mode it is also the step of the round. As an end:
// exclusive.
struct BatchKind {
  using Number = int64_t;
  static constexpr Number kFirst = 0;
  static constexpr IdUse kUse = IdUse::kOrdinal;
};
using BatchIndex = Id<BatchKind>;
// An end: the whole shard.
inline constexpr BatchIndex kToTheEnd{std::numeric_limits<int64_t>::max()};
// The end of a shard with this many batches.
constexpr BatchIndex EndOf(int64_t batches) {
  return BatchIndex(batches);
}

// A range of batches of a shard, identified by its first batch: the whole shard, or a part that was
// split off.
struct RangeKind {
  using Number = int64_t;
  static constexpr Number kFirst = 0;
  static constexpr IdUse kUse = IdUse::kName;
};
using RangeId = Id<RangeKind>;
constexpr RangeId RangeFrom(BatchIndex first) {
  return RangeId(first.value());
}
constexpr BatchIndex FirstBatch(RangeId range) {
  return BatchIndex(range.value());
}

// A holding of a range, from 1: rises with every new holder in an epoch, and fences the previous
// one.
struct AttemptKind {
  using Number = uint32_t;
  static constexpr Number kFirst = 1;
  static constexpr IdUse kUse = IdUse::kOrdinal;
};
using Attempt = Id<AttemptKind>;
inline constexpr Attempt kNoAttempt{0};

// Synchronous mode: consecutive shards of an epoch that are trained together, one in each lane;
// from 0.
struct RoundKind {
  using Number = int64_t;
  static constexpr Number kFirst = 0;
  static constexpr IdUse kUse = IdUse::kOrdinal;
};
using RoundIndex = Id<RoundKind>;
inline constexpr RoundIndex kNoRound{-1};

// A parameter server process that was started in a job, from 0; never reused.
struct ServerKind {
  using Number = uint32_t;
  static constexpr Number kFirst = 0;
  static constexpr IdUse kUse = IdUse::kSequence;
};
using ServerId = Id<ServerKind>;
inline constexpr ServerId kNoServer{0xFFFFFFFF};

// A partition map of a job, from 1; higher with each.
struct MapVersionKind {
  using Number = uint64_t;
  static constexpr Number kFirst = 1;
  static constexpr IdUse kUse = IdUse::kSequence;
};
using MapVersion = Id<MapVersionKind>;
inline constexpr MapVersion kNoMapVersion{0};

// All-reduce: a list of members, from 1; a new one when the members change, or when a collective
// has failed.
struct WorldKind {
  using Number = int64_t;
  static constexpr Number kFirst = 1;
  static constexpr IdUse kUse = IdUse::kSequence;
};
using WorldId = Id<WorldKind>;
inline constexpr WorldId kNoWorld{0};

// All-reduce: a regroup, from 1, also if the world does not change.
struct GenerationKind {
  using Number = int64_t;
  static constexpr Number kFirst = 1;
  static constexpr IdUse kUse = IdUse::kSequence;
};
using Generation = Id<GenerationKind>;
inline constexpr Generation kNoGeneration{0};

// All-reduce: a member's place in its world, from 0, the oldest first.
struct RankKind {
  using Number = uint32_t;
  static constexpr Number kFirst = 0;
  static constexpr IdUse kUse = IdUse::kOrdinal;
};
using Rank = Id<RankKind>;

}  // namespace sluice::elastic
