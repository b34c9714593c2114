#pragma once

#include <string>
#include <utility>
#include <vector>

#include "elastic/ids.h"
#include "elastic/master/progress.h"
#include "elastic/queue/keep_order.h"

namespace sluice::elastic {

// What a master has decided and its host has not taken yet: actions to carry out, events to report,
// and the progress at the end of each epoch. Pure; not thread-safe.
class Outbox {
 public:
  struct Action {
    enum class Kind {
      kStartWorker,
      kStopWorker,
      kDrainWorker,
      kKeepWeights,
      kCheckpoint,        // begin one; Master::OnCheckpoint reports its end
      kCommitCheckpoint,  // all-reduce: everything is in the draft (WorldCheckpoint::Take)
      kPassDone,          // Master::passes() has the sums of the pass's shards
    };
    Kind kind = Kind::kStartWorker;
    std::string name;
    Incarnation incarnation = kNoIncarnation;
    double memory_factor = 1;  // kStartWorker: multiple of the statement's memory
    KeepOrder keep = {};       // kKeepWeights
  };
  struct Event {
    std::string kind;
    std::string detail;
  };

  void Add(Action action) { actions_.push_back(std::move(action)); }
  void AddEvent(std::string kind, std::string detail) {
    events_.push_back({std::move(kind), std::move(detail)});
  }
  void AddEpochEnd(Progress progress) { epoch_ends_.push_back(std::move(progress)); }

  bool has_actions() const { return !actions_.empty(); }
  // Each returns what was added since its last call, in that order.
  std::vector<Action> TakeActions() { return std::exchange(actions_, {}); }
  std::vector<Event> TakeEvents() { return std::exchange(events_, {}); }
  std::vector<Progress> TakeEpochEnds() { return std::exchange(epoch_ends_, {}); }

 private:
  std::vector<Action> actions_;
  std::vector<Event> events_;
  std::vector<Progress> epoch_ends_;
};

}  // namespace sluice::elastic
