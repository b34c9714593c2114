#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "elastic/fleet/fleet.h"
#include "elastic/job/fleet_job.h"

namespace sluice::executor {

// A job's fleet for several trainings, one after the other: each watches it in turn, and its
// processes have names of their own. Launch and Stop are thread-safe.
class SearchFleet final : public elastic::Fleet {
 public:
  // `endpoint`: the job's.
  SearchFleet(elastic::Fleet& fleet, const elastic::JobEndpoint& endpoint);

  // The endpoint of the training with that number, which is the next one. Of the processes that an
  // earlier master of the job left, the training gets its own; the others are stopped.
  elastic::JobEndpoint Begin(uint32_t training);
  // The training is over: it hears of no further event.
  void End();

  Status Launch(const elastic::ProcessSpec& spec) override { return fleet_.Launch(spec); }
  Status Stop(const std::string& name, double grace_seconds) override {
    return fleet_.Stop(name, grace_seconds);
  }
  void Watch(Watcher watcher) override;

 private:
  // Shared with the fleet's watcher, which may outlive this object.
  struct Audience {
    Mutex mutex;
    Watcher watcher GUARDED_BY(mutex);
    uint32_t workers GUARDED_BY(mutex) = 0;  // as granted last
    void OnEvent(const elastic::FleetEvent& event) EXCLUDES(mutex);
  };

  elastic::Fleet& fleet_;
  elastic::JobEndpoint endpoint_;  // its `living`: those that no training has got yet
  uint32_t begun_with_ = 0;        // workers
  bool watches_ = false;
  const std::shared_ptr<Audience> audience_ = std::make_shared<Audience>();
};

}  // namespace sluice::executor
