#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "elastic/queue/membership.h"

namespace sluice::elastic {

// Which processes work for a job: how many are wanted, which are to be started or drained, and
// whether a lost one is replaced. It decides; the caller acts. Pure; not thread-safe.
class WorkerPool {
 public:
  struct Options {
    std::string job_name;
    uint32_t workers = 1;  // wanted, until Scale changes it
    double silence_seconds = 10;
    int64_t worker_bytes = 0;  // that a worker is estimated to take, for messages; 0: not known
  };
  // How often a worker that ran out of memory is replaced by one that may have more.
  static constexpr int kMemoryRaises = 4;
  static constexpr double kMemoryFactor = 1.5;
  // If this many processes in a row start and fail before one of them has trained a batch, no more
  // are started. Preemption is normal and gets more patience, but not without limit, so that a
  // process that is killed at every start (a memory limit) is not started forever.
  static constexpr int kFailedStarts = 8;
  static constexpr int kPreemptedStarts = 64;
  // One that the kernel kills for memory is given one more chance: another process may have taken
  // the memory.
  static constexpr int kKilledStarts = 2;

  struct Process {
    std::string name;
    Incarnation incarnation = kNoIncarnation;
    double memory_factor = 1;  // multiple of the statement's memory
  };
  struct Change {
    std::vector<Process> start;
    std::vector<Process> drain;  // these hand back their tasks and leave
  };
  struct Lost {
    Membership::Worker worker;
    bool drained = false;  // it was supposed to leave
  };

  explicit WorkerPool(const Options& options)
      : options_(options), wanted_(options.workers), members_(options.silence_seconds) {}

  // A fleet is available: from now on the wanted number of processes is maintained.
  void Open() { open_ = true; }
  bool open() const { return open_; }
  uint32_t wanted() const { return wanted_; }
  // `give_up`: names of those that leave first, if some have to.
  Change Scale(uint32_t workers, TimePoint now, const std::vector<std::string>& give_up = {});
  // Those of `alive`, names of processes that somebody has started for this pool before, and all
  // with lower numbers, are its own from now on. Returned to be started, as all others are.
  std::vector<Process> StartThoseOf(const std::vector<std::string>& alive, TimePoint now);
  // Replacements that had to wait, and whose time has come.
  std::vector<Process> StartDue(TimePoint now);
  // Registers a worker that another component starts.
  Incarnation Expect(const std::string& name, TimePoint now) { return members_.Expect(name, now); }

  // A message from a worker. True: the first one. Aborted: it has been given up.
  Result<bool> Contact(Incarnation worker, TimePoint now);
  // Results of its training have arrived, so further starts are worthwhile.
  void OnCommitted(Incarnation worker);
  // It has ended, or has been given up; nullopt: it was removed before.
  std::optional<Lost> Remove(Incarnation worker);
  // The process that replaces it now; nullopt: none, or one later. An error: too many were lost in
  // a row (53200: killed for memory).
  Result<std::optional<Process>> Replace(const Lost& lost, ExitClass how, const std::string& why,
                                         TimePoint now);
  // The fleet has no room for it: requested again in a second. True: not reported before.
  bool OnNoRoom(Incarnation worker, TimePoint now);
  // A worker ran out of memory. The new Process::memory_factor of the next ones; nullopt: it is not
  // raised further.
  std::optional<double> RaiseMemory();

  bool drained(Incarnation worker) const { return drained_.contains(worker); }
  // No worker is left, and none waits to be started.
  bool Empty() const { return members_.size() + later_starts_.size() == 0; }
  const Membership& members() const { return members_; }
  // The state that another pool needs to continue, with the members.
  int started() const { return started_; }
  void Restore(int started, Incarnation next, const std::vector<Membership::Worker>& members);

 private:
  // Workers, without the draining ones, with those that start later.
  size_t Staying() const { return members_.size() - drained_.size() + later_starts_.size(); }
  Process Start(TimePoint now);
  void StartLater(double seconds, TimePoint now);
  std::vector<Process> Drain(size_t count, const std::vector<std::string>& first);
  double memory_factor() const;
  Status TooLittleMemory() const;

  const Options options_;
  bool open_ = false;
  uint32_t wanted_;
  Membership members_;
  std::set<Incarnation> drained_;
  int started_ = 0;
  int failed_starts_ = 0;  // since a new worker last trained a batch
  int preempted_starts_ = 0;
  int killed_starts_ = 0;  // for memory
  std::string last_kill_;  // how the last of those ended
  int memory_raises_ = 0;
  bool waits_for_room_ = false;          // reported already
  std::vector<TimePoint> later_starts_;  // replacements that wait
};

}  // namespace sluice::elastic
